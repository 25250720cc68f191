"""C text of CasADi functions, for one state at a time or for several side by side.

A function of scalar expressions is a list of instructions. Each becomes one C statement on values
of the type ``V``: a number for calls with one state, a vector of numbers of several states
(GCC's vector extension, which Clang has too) for batches. The text is the same; only the preamble
differs. CasADi's own generator writes scalar double code only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cards_core.codegen.kernel import (
    Layout,
    RepeatedKernel,
    casadi_module,
    kernel_function,
    layout_of,
)
from cards_core.errors import CompilationError

Precision = Literal["double", "single"]

REAL = {"double": "double", "single": "float"}
"""C type of a number."""

PART = 2000
"""Statements in one C function."""

BYTES = {"double": 8, "single": 4}

_BINARY = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_CALLS = (
    *("EXP", "LOG", "SQRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "FLOOR", "CEIL", "FABS"),
    *("ERF", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "LOG1P", "EXPM1"),
)
"""Functions of one argument that C's library has under the same name."""
_CALLS2 = ("FMOD", "COPYSIGN", "ATAN2", "HYPOT")
_DECISIONS = ("LT", "LE", "EQ", "NE", "AND", "OR", "FMIN", "FMAX", "IF_ELSE_ZERO")

_HIDDEN = '#define HIDDEN __attribute__((visibility("hidden")))'

_SCALAR = """\
typedef R V;
#define LANE(a) (a)
#define EACH
static inline V same(R a) { return a; }
#define B(a) ((R)(a))
"""

_LANES = """\
typedef R V __attribute__((vector_size(sizeof(R) * LANES), aligned(sizeof(R))));
#define LANE(a) (a)[k]
#define EACH for (int k = 0; k < LANES; k++)
static inline V same(R a) { V r; EACH r[k] = a; return r; }
static inline V self(V a) { return a; }
#define B(a) _Generic((a), R: same, default: self)(a)
"""

_OPERATIONS = """\
#define UNARY(name, expression) \\
  static inline V v_##name(V a) { \\
    V r; EACH { const R x = LANE(a); LANE(r) = expression; } return r; }
#define BINARY(name, expression) \\
  static inline V v2_##name(V a, V b) { \\
    V r; EACH { const R x = LANE(a), y = LANE(b); LANE(r) = expression; } return r; }
"""

_DECISION_TEXT = {
    "LT": "x < y",
    "LE": "x <= y",
    "EQ": "x == y",
    "NE": "x != y",
    "AND": "x != 0 && y != 0",
    "OR": "x != 0 || y != 0",
    # as fmin and fmax of C, which ignore a NaN, but without a call
    "FMIN": "(x < y || y != y) ? x : y",
    "FMAX": "(x > y || y != y) ? x : y",
    "IF_ELSE_ZERO": "x != 0 ? y : 0",
}


def preamble(lanes: int, precision: Precision) -> str:
    """Return the definitions that emitted functions need.

    Args:
        lanes: How many states are computed side by side; 1 for plain numbers.
        precision: Of all numbers.
    """
    suffix = "f" if precision == "single" else ""
    lines = [
        "#include <math.h>",
        _HIDDEN,
        f"typedef {REAL[precision]} R;",
        f"#define LANES {lanes}",
    ]
    lines.append(_SCALAR if lanes == 1 else _LANES)
    lines.append(_OPERATIONS)
    lines += [f"UNARY({name}, {name.lower()}{suffix}(x))" for name in _CALLS]
    lines.append("UNARY(NOT, x == 0)")
    lines.append("UNARY(SIGN, x != x ? x : (R)((x > 0) - (x < 0)))")
    lines += [f"BINARY({name}, {name.lower()}{suffix}(x, y))" for name in _CALLS2]
    lines.append(f"BINARY(POW, pow{suffix}(x, y))")
    lines += [f"BINARY({name}, {text})" for name, text in _DECISION_TEXT.items()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Statement:
    """One line of C: a value that gets a name, or an output.

    Attributes:
        target: Number of the value; None for an output.
        text: C expression, or the place of an output and its expression.
        uses: Numbers of the named values in it.
    """

    target: int | None
    text: str
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Emitted:
    """C text of one function.

    Attributes:
        main: ``static void symbol(const V *x, V *y)``.
        parts: Functions that it calls, each independent of the others; empty for short functions.
        statements: Number of statements of the longest of them.
    """

    main: str
    parts: tuple[str, ...]
    statements: int


def emit_function(function: Any, symbol: str, layout: Layout) -> Emitted:
    """Return C text of ``static void symbol(const V *x, V *y)``.

    Long functions are cut into parts of `PART` statements, because a compiler's time grows faster
    than the length of a function; values that later parts need are kept in an array.

    Args:
        function: CasADi SX function with dense outputs.
        symbol: Name of the C function.
        layout: Where inputs start in x and outputs (counted from the end of the inputs) in y.

    Raises:
        CompilationError: An operation that has no translation, by its number in CasADi.
    """
    statements = _statements(function, symbol, layout)
    head = f"static void {symbol}(const V *restrict x, V *restrict y) {{"
    if len(statements) <= PART:
        body = [_line(item) for item in statements]
        return Emitted("\n".join([head, *body, "}\n"]), (), len(statements))
    parts = [statements[i : i + PART] for i in range(0, len(statements), PART)]
    slots, size = _kept(parts)
    texts, main = [], []
    for number, part in enumerate(parts):
        arguments = "(const V *restrict x, V *restrict y, V *restrict w)"
        signature = f"HIDDEN void {symbol}_{number}{arguments}"
        lines = [signature + " {"]
        here: set[int] = set()
        for item in part:
            for use in item.uses:
                if use not in here:
                    here.add(use)
                    lines.append(f"const V t{use} = w[{slots[use]}];")
            lines.append(_line(item))
            if item.target is not None:
                here.add(item.target)
                if item.target in slots:
                    lines.append(f"w[{slots[item.target]}] = t{item.target};")
        texts.append("\n".join([*lines, "}\n"]))
        main.append(signature + ";")
    main += [head, f"V w[{max(size, 1)}];"]
    main += [f"{symbol}_{number}(x, y, w);" for number in range(len(parts))]
    return Emitted("\n".join([*main, "}\n"]), tuple(texts), PART)


def emit_repeated(
    kernel: RepeatedKernel, symbol: str, *, simplify: bool = True
) -> tuple[Emitted, int]:
    """Return C text of a kernel that loops over elements, and how many instructions it has.

    Args:
        kernel: The kernel.
        symbol: Name of the C function.
        simplify: Whether common subexpressions are computed once only.
    """
    texts: list[str] = []
    parts: list[str] = []
    body, instructions, longest = [], 0, 0
    for number, part in enumerate(kernel.parts):
        name, one = f"{symbol}_of{number}", part.kernel(kernel.name)
        function = kernel_function(one, name, simplify=simplify)
        emitted = emit_function(function, name, layout_of(one))
        instructions += function.n_instructions()
        longest = max(longest, emitted.statements)
        parts += emitted.parts
        (n, reads), values, writes = part.reads.shape, part.values.shape[1], part.writes.shape[1]
        numbers = ", ".join(_number(float(value)) for value in part.values.ravel())
        texts += [
            emitted.main,
            f"static const int {name}_reads[] = {{{_integers(part.reads)}}};",
            f"static const int {name}_writes[] = {{{_integers(part.writes)}}};",
            f"static const R {name}_values[] = {{{numbers or 0}}};",
        ]
        body += [
            f"for (int i = 0; i < {n}; i++) {{",
            f"V a[{reads + values}], b[{writes}];",
            f"for (int j = 0; j < {reads}; j++) a[j] = x[{name}_reads[i*{reads} + j]];",
            f"for (int j = 0; j < {values}; j++)",
            f"  a[{reads} + j] = B({name}_values[i*{values} + j]);",
            f"{name}(a, b);",
            f"for (int j = 0; j < {writes}; j++) y[{name}_writes[i*{writes} + j]] = b[j];",
            "}",
        ]
    head = f"static void {symbol}(const V *restrict x, V *restrict y) {{"
    return Emitted("\n".join([*texts, head, *body, "}\n"]), tuple(parts), longest), instructions


def _integers(values: Any) -> str:
    return ", ".join(map(str, values.ravel().tolist())) or "0"


def _line(item: _Statement) -> str:
    return f"{item.text};" if item.target is None else f"const V t{item.target} = {item.text};"


def _kept(parts: Sequence[Sequence[_Statement]]) -> tuple[dict[int, int], int]:
    """Return places for values that other parts than their own need, and how many there are."""
    born: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, part in enumerate(parts):
        for item in part:
            if item.target is not None:
                born[item.target] = number
            for use in item.uses:
                last[use] = number
    slots: dict[int, int] = {}
    free: list[int] = []
    size = 0
    ending: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        for item in part:
            value = item.target
            if value is None or last.get(value, number) == number:
                continue
            if free:
                slots[value] = free.pop()
            else:
                slots[value], size = size, size + 1
            ending.setdefault(last[value], []).append(slots[value])
        free += ending.pop(number, [])
    return slots, size


def _statements(function: Any, symbol: str, layout: Layout) -> list[_Statement]:
    names = _operation_names()
    first_in = [slot.start for slot in layout.inputs]
    first_out = [slot.start - layout.input_size for slot in layout.outputs]
    # what stands for a register of CasADi: an expression, and the named value in it if any
    value: dict[int, tuple[str, tuple[int, ...]]] = {}
    statements: list[_Statement] = []
    for k in range(function.n_instructions()):
        name = names.get(function.instruction_id(k), "")
        out = function.instruction_output(k)
        arguments = function.instruction_input(k)
        if name == "OUTPUT":
            place = first_out[out[0]] + out[1]
            text, uses = value[arguments[0]]
            statements.append(_Statement(None, f"y[{place}] = B({text})", uses))
        elif name == "CONST":
            value[out[0]] = _number(function.instruction_constant(k)), ()
        elif name == "INPUT":
            value[out[0]] = f"x[{first_in[arguments[0]] + arguments[1]}]", ()
        elif name == "ASSIGN":
            value[out[0]] = value[arguments[0]]
        else:
            text = _operation(name, [value[i][0] for i in arguments])
            if not text:
                raise CompilationError(
                    f"no C for operation {function.instruction_id(k)} of CasADi in '{symbol}'"
                )
            uses = tuple({use for i in arguments for use in value[i][1]})
            statements.append(_Statement(k, f"B({text})" if "(R)" in text else text, uses))
            value[out[0]] = f"t{k}", (k,)
    return statements


def _operation_names() -> dict[int, str]:
    """CasADi's operation numbers and what we call them."""
    ca = casadi_module()
    known = [*_BINARY, *_CALLS, *_CALLS2, *_DECISIONS, "NOT", "SIGN", "POW", "CONSTPOW"]
    known += ["NEG", "SQ", "TWICE", "INV", "ASSIGN", "CONST", "INPUT", "OUTPUT"]
    return {getattr(ca, f"OP_{name}"): name for name in known}


def _operation(name: str, a: Sequence[str]) -> str:
    """C expression of one operation, empty if it is unknown."""
    match name:
        case "ADD" | "SUB" | "MUL" | "DIV":
            return f"{a[0]} {_BINARY[name]} {a[1]}"
        case "NEG":
            return f"-{a[0]}"
        case "SQ":
            return f"{a[0]} * {a[0]}"
        case "TWICE":
            return f"{a[0]} + {a[0]}"
        case "INV":
            return f"(R)1 / {a[0]}"
        case "CONSTPOW":
            return f"v2_POW(B({a[0]}), B({a[1]}))"
        case "POW" | "FMOD" | "COPYSIGN" | "ATAN2" | "HYPOT":
            return f"v2_{name}(B({a[0]}), B({a[1]}))"
        case _ if name in _DECISIONS:
            return f"v2_{name}(B({a[0]}), B({a[1]}))"
        case _ if name in _CALLS or name in ("NOT", "SIGN"):
            return f"v_{name}(B({a[0]}))"
        case _:
            return ""


def _number(value: float) -> str:
    if math.isnan(value):
        return "((R)NAN)"
    if math.isinf(value):
        return "((R)INFINITY)" if value > 0 else "(-(R)INFINITY)"
    return f"((R){value!r})"


def entry_point(symbol: str, layout: Layout, lanes: int) -> str:
    """Return the C function that is called from outside.

    With one lane ``void cards_symbol(R *io)``: inputs, then outputs, in one buffer. With more
    ``void cards_symbol(const R *in, R *out, long long count)``: one state per row; rows that do
    not fill all lanes are padded with the last one.

    Args:
        symbol: Name of the inner function.
        layout: Inputs and outputs of the kernel.
        lanes: States that the inner function computes at once.
    """
    inputs, outputs = layout.input_size, layout.size - layout.input_size
    if lanes == 1:
        return f"void cards_{symbol}(R *io) {{ {symbol}(io, io + {inputs}); }}\n"
    return f"""\
void cards_{symbol}(const R *in, R *out, long long count) {{
  V x[{max(inputs, 1)}], y[{max(outputs, 1)}];
  for (long long first = 0; first < count; first += LANES) {{
    const int filled = count - first < LANES ? (int)(count - first) : LANES;
    EACH {{
      const R *row = in + (first + (k < filled ? k : filled - 1)) * {inputs}LL;
      for (int j = 0; j < {inputs}; j++) x[j][k] = row[j];
    }}
    {symbol}(x, y);
    for (int k = 0; k < filled; k++) {{
      R *row = out + (first + k) * {outputs}LL;
      for (int j = 0; j < {outputs}; j++) row[j] = y[j][k];
    }}
  }}
}}
"""
