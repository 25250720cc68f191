"""Public functions of three and more parameters say what these are.

A function may refer to another one, "see `X`" or "as `X`", of a function or class that says it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
PACKAGES = sorted(file.parent / file.parent.name for file in TOP.glob("src/*/setup.py"))
MANY = 3
"""From so many parameters on they are listed."""

REFERENCE = re.compile(r"\b(?:[Ss]ee|[Aa]s|as of|as in|those of|as for) `([\w.]+)`")
SECTIONS = "Args:", "Attributes:"
NUMBERS = re.compile(r"\b(Array|NDArray|float|int|Real|Expr|Any)\b")
"""Results whose meaning, shape and unit the type does not say."""

SAID = re.compile(r"\b(return(s|ed)?|yields?|tells?)\b", re.IGNORECASE)
"""A docstring has one of these words where it says what comes back."""


@dataclass(frozen=True)
class Function:
    """A function or method."""

    place: str
    parameters: tuple[str, ...]
    doc: str
    returns: str
    raises: bool


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, *, method: bool) -> tuple[str, ...]:
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    a = node.args
    names = [item.arg for item in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names = names[1:] if method and not static else names
    return (*names, *(item.arg for item in (a.vararg, a.kwarg) if item is not None))


def own_raises(node: ast.AST) -> bool:
    """Tell whether a function raises an error itself, not in a function within it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.Raise) and child.exc is not None:
            if "AssertionError" not in ast.unparse(child.exc):
                return True
        elif own_raises(child):
            return True
    return False


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(d).rpartition(".")[2] == "overload" for d in node.decorator_list)


def functions(node: ast.AST, place: str, *, method: bool = False) -> Iterator[Function]:
    """Yield the public functions of a module, in classes too, without those in functions."""
    for child in ast.iter_child_nodes(node):
        name = getattr(child, "name", None)
        if isinstance(name, str) and name.startswith("_"):
            continue
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{place}:{name}", method=True)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if not is_overload(child):
                yield Function(
                    f"{place}:{child.lineno} {name}",
                    parameters(child, method=method),
                    ast.get_docstring(child) or "",
                    ast.unparse(child.returns) if child.returns else "",
                    own_raises(child),
                )
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from functions(child, place, method=method)


@cache
def trees() -> dict[str, ast.Module]:
    return {
        str(file.relative_to(TOP)): ast.parse(file.read_text(encoding="utf-8"))
        for package in PACKAGES
        for file in sorted(package.rglob("*.py"))
    }


@cache
def all_functions() -> tuple[Function, ...]:
    return tuple(one for place, tree in trees().items() for one in functions(tree, place))


@cache
def described() -> frozenset[str]:
    """Names of functions and classes, and of classes' methods, that have such lists."""
    found = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and has_list(node):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                methods = (item for item in node.body if isinstance(item, ast.FunctionDef))
                found |= {f"{node.name}.{item.name}" for item in methods if has_list(item)}
    return frozenset(found)


def has_list(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(section in (ast.get_docstring(node) or "") for section in SECTIONS)


def problem(function: Function, known: frozenset[str]) -> str | None:
    """Return what a docstring lacks, or None."""
    doc = function.doc
    if len(function.parameters) < MANY:
        return None
    if "Args:" not in doc:
        own = function.place.rpartition(" ")[2]
        for name in REFERENCE.findall(doc):
            # "See `Base`" of an override stands for the method of that base
            if name.rpartition(".")[2] in known or f"{name.rpartition('.')[2]}.{own}" in known:
                return None
        return "no Args"
    listed = doc.split("Args:", 1)[1]
    missing = [name for name in function.parameters if not re.search(rf"\b{name}\b", listed)]
    if missing:
        return f"not in Args: {', '.join(missing)}"
    if NUMBERS.search(function.returns) and not SAID.search(doc):
        return "no Returns"
    if function.raises and "Raises" not in doc:
        return "no Raises"
    return None


def test_public_functions_say_what_their_parameters_are():
    assert len(PACKAGES) > 10
    assert sum(len(one.parameters) >= MANY for one in all_functions()) > 500
    known = described()
    lacking = [
        f"{one.place}: {found}" for one in all_functions() if (found := problem(one, known))
    ]
    assert not lacking, "\n" + "\n".join(lacking)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b, c): ...", "no Args"),
        ("def f(a, b): ...", None),
        ("def f(a, *b, **c):\n    '''Do.\n\n    Args:\n        a, b, c: All.\n    '''", None),
        (
            "def f(a, b, c):\n    '''Do.\n\n    Args:\n        a, b: Two.\n    '''",
            "not in Args: c",
        ),
        (
            "def f(a, b, c) -> float:\n    '''Do.\n\n    Args:\n        a, b, c: All.\n    '''",
            "no Returns",
        ),
        (
            "def f(a, b, c) -> int:\n"
            "    '''Return it.\n\n    Args:\n        a, b, c: All.\n    '''\n    raise ValueError",
            "no Raises",
        ),
        ("def f(a, b, c):\n    '''Do, see `g`.'''", None),
        ("def f(a, b, c):\n    '''Do, see `h`.'''", "no Args"),
        ("class A:\n    def f(self, a, b, c):\n        '''See `x.Base`.'''", None),
        ("class A:\n    def g(self, a, b, c):\n        '''See `x.Base`.'''", "no Args"),
        ("class A:\n    def f(self, a, b): ...", None),
        ("class A:\n    @staticmethod\n    def f(x, a, b): ...", "no Args"),
    ],
)
def test_what_lacks_is_found(source, expected):
    (found,) = functions(ast.parse(source), "x.py")
    assert problem(found, frozenset({"g", "Base.f"})) == expected
