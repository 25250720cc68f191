"""Where a source file can be changed, and into what: one small fault at a time.

Python is read with `ast`, C by its tokens, comments and texts left out. Each change is of a kind
that a programmer makes by mistake: another comparison or operator, a number off by one or doubled,
a condition that is always or never true, a statement that is missing.
"""

# ruff: noqa: N815  (names of methods are those of `ast.NodeVisitor`)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mutant:
    """`text[start:end]` becomes `new`, in a file of this checkout."""

    path: str
    start: int
    end: int
    new: str
    kind: str

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.new + text[self.end :]

    def describe(self, text: str) -> str:
        """Place, line as it is, and change."""
        line = text.count("\n", 0, self.start) + 1
        old = " ".join(text[self.start : self.end].split())
        return f"{self.path}:{line} {self.kind}: {old[:70]!r} -> {self.new!r}"


SWAPS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",),
    "*": ("/",), "/": ("*",), "+=": ("-=",), "-=": ("+=",), "<<": (">>",), ">>": ("<<",),
    "&": ("|",), "|": ("&",), "and": ("or",), "or": ("and",), "is": ("is not",),
    "is not": ("is",), "in": ("not in",), "not in": ("in",),
}  # fmt: skip
"""What takes the place of an operator."""


def other_numbers(token: str) -> list[str]:
    """The number off by one; a fraction doubled."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", token)
    if match:
        octal = re.fullmatch(r"0[0-7]+", match[1])
        number = int(match[1], 8 if octal else 0) + 1
        return [f"{number:#o}".replace("o", "") + match[2] if octal else f"{number}{match[2]}"]
    match = re.fullmatch(r"([0-9.]+)([eE][-+]?[0-9]+)?([fF]?)", token)
    if not match:
        return []
    value = float(match[1])
    return [f"{2.0 * value if value else 1.0!r}{match[2] or ''}{match[3]}"]


class _Python(ast.NodeVisitor):
    """Collects the mutants of one module."""

    def __init__(self, path: str, text: str):
        self.path, self.text, self.found = path, text, list[Mutant]()
        raw = text.encode().splitlines(keepends=True)
        self.lines, at = [], 0
        for line in raw:
            self.lines.append((at, line))
            at += len(line.decode())

    def at(self, line: int, column: int) -> int:
        """Offset in characters of a place that `ast` tells in bytes of its line."""
        start, raw = self.lines[line - 1]
        return start + len(raw[:column].decode())

    def begin(self, node: ast.AST) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.AST) -> int:
        return self.at(node.end_lineno, node.end_col_offset)

    def add(self, start: int, end: int, new: str, kind: str) -> None:
        self.found.append(Mutant(self.path, start, end, new, kind))

    def between(self, left: ast.AST, right: ast.AST) -> None:
        """The operator between two operands."""
        start, end = self.end(left), self.begin(right)
        gap = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), self.text[start:end])
        match = re.search(r"is\s+not|not\s+in|is|in|and|or|[-+*/<>=!&|]+", gap)
        if match:
            for new in SWAPS.get(" ".join(match[0].split()), ()):
                self.add(start + match.start(), start + match.end(), new, "operator")

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self.between(left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.between(node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.add(self.begin(node), self.begin(node.operand), "", "operator")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self.begin(node), self.end(node)
        if isinstance(node.value, bool):
            self.add(start, end, str(not node.value), "constant")
        elif isinstance(node.value, int | float):
            for new in other_numbers(self.text[start:end]):
                self.add(start, end, new, "constant")

    def condition(self, node: ast.If | ast.While | ast.IfExp) -> None:
        for new in ("True", "False"):
            if not (isinstance(node, ast.While) and new == "True"):
                self.add(self.begin(node.test), self.end(node.test), new, "condition")
        self.generic_visit(node)

    visit_IfExp = visit_While = condition

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.condition(node)

    def statement(self, node: ast.stmt) -> None:
        self.add(self.begin(node), self.end(node), "pass", "statement")
        self.generic_visit(node)

    visit_Raise = visit_Break = visit_Continue = visit_AugAssign = statement

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.statement(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        # a name that is never bound fails at once and says nothing about the tests
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.statement(node)
        else:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *node.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name != "__repr__":
            self.visit(node.args)
            for child in node.body:
                self.visit(child)

    visit_AsyncFunctionDef = visit_FunctionDef


C_HIDDEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|^[ \t]*#[ \t]*(?:include|if|ifdef|ifndef|elif|else|endif|undef|pragma|error)\b[^\n]*",
    re.DOTALL | re.MULTILINE,
)
C_OPERATOR = re.compile(r"(?<=[\w)\]] )(<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/<>&|])(?= )")
C_NUMBER = re.compile(
    r"(?<![\w.])(?:0[xX][0-9a-fA-F]+[uUlL]*|[0-9][0-9.]*(?:[eE][-+]?\d+)?[uUlLfF]*)"
)
C_STATEMENT = re.compile(
    r"^[ \t]+((?:\(void\)\s*)?[A-Za-z_][\w.>\[\]-]*(?:\[[^\]\n]*\][\w.>-]*)*\s*"
    r"(?:\([^;{}]*\)|(?:[-+*/&|]|<<|>>)?=(?!=)[^;{}]*|\+\+|--));",
    re.MULTILINE,
)
C_WORDS = re.compile(r"\b(true|false|continue|break)\b")


def _c_mutants(path: str, text: str) -> Iterator[Mutant]:
    seen = C_HIDDEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in C_OPERATOR.finditer(seen):
        for new in SWAPS[match[1]]:
            yield Mutant(path, match.start(1), match.end(1), new, "operator")
    for match in re.finditer(r"!(?=[\w(])", seen):
        yield Mutant(path, match.start(), match.end(), "", "operator")
    for match in C_NUMBER.finditer(seen):
        for new in other_numbers(match[0]):
            yield Mutant(path, match.start(), match.end(), new, "constant")
    for match in C_WORDS.finditer(seen):
        word = match[1]
        if word in ("true", "false"):
            other = "false" if word == "true" else "true"
            yield Mutant(path, match.start(), match.end(), other, "constant")
        elif word == "continue":
            yield Mutant(path, match.start(), match.end(), "", "statement")
    for match in C_STATEMENT.finditer(seen):
        if not re.match(r"(return|static|const|else|case|goto)\b", match[1]):
            yield Mutant(path, match.start(1), match.end(1), "", "statement")
    for match in re.finditer(r"\bif \(", seen):
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(seen[at], 0)
            at += 1
        for new in ("1", "0"):
            yield Mutant(path, match.end(), at - 1, new, "condition")


def mutants(path: str, text: str) -> list[Mutant]:
    """Every mutant of a file, in the order of places; raises `ValueError` for other languages."""
    if path.endswith(".py"):
        collector = _Python(path, text)
        collector.visit(ast.parse(text))
        found = collector.found
    elif path.endswith(".c"):
        found = list(_c_mutants(path, text))
    else:
        raise ValueError(f"{path}: neither Python nor C")
    return sorted(set(found))
