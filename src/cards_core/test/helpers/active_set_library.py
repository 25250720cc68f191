"""The C text of the active-set method and of the cascade on it, behind ctypes."""

import ctypes
from functools import cache

import numpy as np

from cards_core.codegen.library import load_library
from cards_core.optimize.active_set import ACTIVE_SET, DOT, GOAL_PROGRAM, REAL, ROWS
from cards_core.optimize.goal_program import FULL_SHARE, RELAXATION, ROUNDING, STIFFNESS

WRAPPER = """
#include <stdlib.h>
int test_solve(int n, int p, int limit, const real *root, const real *gradient,
               const real *matrix, const real *low, const real *up, real *x, int *iterations) {
  active_set_t s = {.n = n, .p = p, .root = root, .gradient = gradient, .matrix = matrix,
                    .low = low, .up = up, .x = x, .limit = limit};
  s.work = malloc(sizeof(real)*(size_t)(ACTIVE_SET_WORK(n, p) + 1));
  s.whole = malloc(sizeof(int)*(size_t)(ACTIVE_SET_WHOLE(n, p) + 1));
  active_set_place(&s);
  const int flag = active_set_solve(&s);
  *iterations = s.iterations;
  free(s.work);
  free(s.whole);
  return flag;
}
int test_goals(int n, int hard, int goals, int yielding, const real *root,
               const real *slackness, const int *which, const real *settings,
               const real *gradient, const real *matrix, const real *low, const real *up,
               real *x, real *missing, int *iterations) {
  goal_program_t g = {.n = n, .hard = hard, .goals = goals, .yielding = yielding, .root = root,
                      .slackness = slackness, .which = which, .tolerance = settings[0],
                      .rounding = settings[1], .stiffness = settings[2],
                      .relaxation = settings[3], .price = settings[4],
                      .full_share = settings[5], .regular = settings[6]};
  real *numbers = malloc(sizeof(real)*(size_t)GOAL_NUMBERS(n, hard, goals, yielding));
  int *whole = malloc(sizeof(int)*(size_t)GOAL_WHOLE(n, hard, goals, yielding));
  goal_program_place(&g, numbers, whole);
  const size_t size = sizeof(real);
  memcpy(g.gradient, gradient, size*(size_t)n);
  memcpy(g.matrix, matrix, size*(size_t)((hard + goals)*n));
  memcpy(g.low, low, size*(size_t)(n + hard + goals));
  memcpy(g.up, up, size*(size_t)(n + hard + goals));
  goal_program_solve(&g);
  memcpy(x, g.x, size*(size_t)n);
  memcpy(missing, g.missing, size*(size_t)(hard + goals));
  *iterations = g.iterations;
  free(numbers);
  free(whole);
  return g.attained + 2*g.limited + 4*g.failed;
}
"""


@cache
def library(single=False):
    """The library, in double or single precision."""
    head = "#define CARDS_SINGLE\n" if single else ""
    parts = (REAL, DOT, ROWS, ACTIVE_SET, GOAL_PROGRAM)
    text = head + "".join(part.read_text() for part in parts) + WRAPPER
    return load_library("the active-set method", text)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def solve(hessian, gradient, matrix, low, up, *, single=False, limit=1000):
    """Return flag, x and iterations; the Hessian is a diagonal, limits are of x, then of rows."""
    dtype = np.float32 if single else np.float64
    arrays = [np.sqrt(hessian), gradient, matrix, low, up]
    arrays = [np.ascontiguousarray(np.clip(a, -1e30, 1e30), dtype) for a in arrays]
    x, iterations = np.zeros(len(gradient), dtype), ctypes.c_int()
    flag = library(single).test_solve(
        len(gradient), len(low) - len(gradient), limit, *map(pointer, arrays), pointer(x),
        ctypes.byref(iterations),
    )  # fmt: skip
    return flag, x.astype(float), iterations.value


def goals(program, weights, hessian, yielding=()):
    """Solve the present program of a `GoalProgram` once more; x, missing and what was found."""
    n, hard = program.gradient.size, program.hard
    count = program.right.size - hard
    slacks = max(count, len(yielding))
    root = np.concatenate([np.sqrt(hessian), np.ones(slacks)])
    stiff = STIFFNESS * np.asarray(weights, float) / max(np.max(weights, initial=0.0), 1e-300)
    settings = [
        program.tolerance, (ROUNDING * program.tolerance) ** 2, STIFFNESS, RELAXATION,
        min(program.price, 1e30), FULL_SHARE, program.regular,
    ]  # fmt: skip
    arrays = [root, 1.0 / np.sqrt(stiff), np.array(yielding, dtype=np.intc), np.array(settings)]
    low = np.concatenate([program.lower_bounds, program.right])
    up = np.concatenate([program.upper_bounds, program.right])
    data = [program.gradient, np.ascontiguousarray(program.matrix), low, up]
    x, missing, iterations = np.zeros(n), np.zeros(hard + count), ctypes.c_int()
    flags = library().test_goals(
        n, hard, count, len(yielding), *map(pointer, [*arrays, *data, x, missing]),
        ctypes.byref(iterations),
    )  # fmt: skip
    return x, missing, {"attained": flags & 1, "limited": flags >> 1 & 1, "failed": flags >> 2}
