"""Our own solver of small quadratic programs, as C text for programs that stand alone.

    minimise    1/2 x' H x + g' x                     H diagonal
    subject to  lb <= x <= ub,   lower <= A x <= upper

`ACTIVE_SET` is the dual active-set method of Goldfarb and Idnani [Goldfarb1983]_, for the programs
of `cards_core.optimize.goal_program`, whose cascade `GOAL_PROGRAM` repeats. It has no memory of
its own, allocates nothing, and starts every solve from the unconstrained minimum: x is a function
of the data alone, where a warm start leaves a trace of the last step in the last digits. The
normals of the active constraints are kept as N = Q R, so that their condition number counts once;
what a factor of their Gram matrix N' N loses is its square.

Python uses DAQP, which is faster from a warm start. An exported controller
(`cards_core.embedded`) cannot: DAQP's package is a library for Python with the C code compiled
into it, not its text.
"""

from __future__ import annotations

from pathlib import Path

_NATIVE = Path(__file__).parent / "native"

REAL = _NATIVE / "real.c"
"""The type of numbers; before the others."""

DOT = _NATIVE / "dot.c"
"""``dot``; follows `REAL`."""

ROWS = _NATIVE / "rows.c"
"""Whether rows are met."""

ACTIVE_SET = _NATIVE / "active_set.c"
"""``active_set_solve``; follows `REAL`."""

GOAL_PROGRAM = _NATIVE / "goal_program.c"
"""``goal_program_solve``; follows `REAL`, `ROWS` and `ACTIVE_SET`."""
