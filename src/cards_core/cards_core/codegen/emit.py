"""C text of CasADi functions, for one state at a time or for several side by side.

A function of scalar expressions is a list of instructions. Each becomes one C statement on values
of the type ``V``: a number for calls with one state, a vector of numbers of several states
(GCC's vector extension, which Clang has too) for batches. The text is the same; only the preamble
differs. CasADi's own generator writes scalar double code only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from cards_core.codegen.kernel import Layout
from cards_core.errors import CompilationError

Precision = Literal["double", "single"]

REAL = {"double": "double", "single": "float"}
"""C type of a number."""

BYTES = {"double": 8, "single": 4}

_BINARY = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}
_CALLS = (
    *("EXP", "LOG", "SQRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "FLOOR", "CEIL", "FABS"),
    *("ERF", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "LOG1P", "EXPM1"),
)
"""Functions of one argument that C's library has under the same name."""
_CALLS2 = ("FMOD", "COPYSIGN", "ATAN2", "HYPOT")
_DECISIONS = ("LT", "LE", "EQ", "NE", "AND", "OR", "FMIN", "FMAX", "IF_ELSE_ZERO")

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
    lines = ["#include <math.h>", f"typedef {REAL[precision]} R;", f"#define LANES {lanes}"]
    lines.append(_SCALAR if lanes == 1 else _LANES)
    lines.append(_OPERATIONS)
    lines += [f"UNARY({name}, {name.lower()}{suffix}(x))" for name in _CALLS]
    lines.append("UNARY(NOT, x == 0)")
    lines.append("UNARY(SIGN, x != x ? x : (R)((x > 0) - (x < 0)))")
    lines += [f"BINARY({name}, {name.lower()}{suffix}(x, y))" for name in _CALLS2]
    lines.append(f"BINARY(POW, pow{suffix}(x, y))")
    lines += [f"BINARY({name}, {text})" for name, text in _DECISION_TEXT.items()]
    return "\n".join(lines) + "\n"


def emit_function(function: Any, symbol: str, layout: Layout) -> str:
    """Return C text of ``static void symbol(const V *x, V *y)``.

    Args:
        function: CasADi SX function with dense outputs.
        symbol: Name of the C function.
        layout: Where inputs start in x and outputs (counted from the end of the inputs) in y.

    Raises:
        CompilationError: An operation that has no translation, by its number in CasADi.
    """
    names = _operation_names()
    first_in = [slot.start for slot in layout.inputs]
    first_out = [slot.start - layout.input_size for slot in layout.outputs]
    value: dict[int, str] = {}
    lines = [f"static void {symbol}(const V *restrict x, V *restrict y) {{"]
    for k in range(function.n_instructions()):
        name = names.get(function.instruction_id(k), "")
        out = function.instruction_output(k)
        arguments = function.instruction_input(k)
        if name == "OUTPUT":
            place = first_out[out[0]] + out[1]
            lines.append(f"y[{place}] = B({value[arguments[0]]});")
            continue
        if name == "CONST":
            value[out[0]] = _number(function.instruction_constant(k))
            continue
        if name == "INPUT":
            text = f"x[{first_in[arguments[0]] + arguments[1]}]"
        else:
            text = _operation(name, [value[i] for i in arguments])
            if not text:
                raise CompilationError(
                    f"no C for operation {function.instruction_id(k)} of CasADi in '{symbol}'"
                )
        if name == "ASSIGN":
            value[out[0]] = text
            continue
        lines.append(f"const V t{k} = B({text});" if "(R)" in text else f"const V t{k} = {text};")
        value[out[0]] = f"t{k}"
    lines.append("}")
    return "\n".join(lines) + "\n"


def _operation_names() -> dict[int, str]:
    """CasADi's operation numbers and what we call them."""
    import casadi as ca

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
        case "ASSIGN":
            return a[0]
        case "CONSTPOW":
            return f"v2_POW(B({a[0]}), B({a[1]}))"
        case "POW" | "FMOD" | "COPYSIGN" | "ATAN2" | "HYPOT":
            return f"v2_{name}(B({a[0]}), B({a[1]}))"
        case _ if name in _DECISIONS:
            return f"v2_{name}(B({a[0]}), B({a[1]}))"
        case _ if name:
            return f"v_{name}(B({a[0]}))"
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
