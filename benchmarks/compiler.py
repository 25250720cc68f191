"""Measurement behind ``./cards bench compiler``: which way to native code is the best.

Every way gives M, C, G, l and L. Measured are the size of the code, how long it takes from a
description to a function that can be called, and how long the function takes.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cards_bringup.benchmarks.timing import Say, empty_cache, machine, quiet_median
from cards_core.codegen.model import BoundKernel
from cards_core.codegen.native import load_or_build
from cards_core.dynamics import compile_model
from cards_core.formats import load
from cards_core.robot.model import Robot

ROBOTS = ("planar_xy", "bm_arm", "ipanema_1", "spherical_2s", "roboy_arm", "snake_24")

WAYS = {
    "default": "joint space, common subexpressions once, -O2 (-O1 above 15,000 operations)",
    "not_simplified": "as the default, but every expression written out",
    "optimised_less": "as the default, with -O1",
    "optimised_more": "as the default, with -O3",
    "body_space": "M_b, C_b, G_b, W, V and l compiled; the products M = W' M_b ... in NumPy",
    "body_products": "as body_space, but the products are expressions too",
}
"""Ways to the same numbers."""


def bench_compiler(say: Say | None = None) -> dict[str, Any]:
    """Measure all ways on all robots.

    Args:
        say: Told what is being measured.

    Returns:
        ``robots``: robot to way to ``instructions``, ``seconds``, ``bytes`` and ``update_us``;
        ``ways``: what they are; ``machine``.
    """
    import casadi  # noqa: F401  # its import, 0.3 s once in a process, is not part of this

    tell = say or (lambda text: None)
    robots: dict[str, Any] = {}
    for name in ROBOTS:
        robot = load(name)
        robots[name] = {}
        for way in WAYS:
            if name == "snake_24" and way in ("not_simplified", "optimised_more"):
                continue  # minutes, and of no use
            tell(f"{name}: {way}")
            with empty_cache(), _flags(way):
                robots[name][way] = _measure(robot, way)
    return {"robots": robots, "ways": WAYS, "machine": machine()}


def _measure(robot: Robot, way: str) -> dict[str, float]:
    start = time.perf_counter()
    update: Callable[[Any, Any], Any]
    match way:
        case "body_space":
            model = compile_model(robot, "M_b,C_b,G_b,W,V,l")
            report, update = model.report, _products(model)
        case "body_products":
            native = load_or_build(b"body products", lambda: [_product_kernel(robot)])
            report, update = native.report, _bound(native.bind("update"))
        case _:
            model = compile_model(robot, simplify=way != "not_simplified")
            report, update = model.report, model.update
    seconds = time.perf_counter() - start
    tree = robot.tree
    rng = np.random.default_rng(0)
    states = itertools.cycle([(tree.random(rng), rng.normal(size=tree.nv)) for _ in range(64)])
    empty = quiet_median(lambda: next(states))
    return {
        "instructions": report.instructions,
        "seconds": seconds,
        "bytes": report.bytes,
        "update_us": quiet_median(lambda: update(*next(states))) - empty,
    }


def _products(model: Any) -> Callable[[Any, Any], Any]:
    def update(q: Any, qd: Any) -> Any:
        v = model.update(q, qd)
        back = v["W"].T
        return back @ v["M_b"], back @ v["C_b"], -(back @ v["G_b"]), v["l"], v["V"] @ v["W"]

    return update


def _bound(kernel: BoundKernel) -> Callable[[Any, Any], Any]:
    q_in, qd_in = kernel.inputs["q"], kernel.inputs["qd"]

    def update(q: Any, qd: Any) -> Any:
        q_in[:] = q
        qd_in[:] = qd
        kernel.call()
        return kernel.outputs

    return update


def _product_kernel(robot: Robot) -> Any:
    """M, C, G and L as products of body-space expressions."""
    from cards_core.codegen.kernel import Kernel
    from cards_core.dynamics.symbolic import outputs as expressions
    from cards_core.dynamics.symbolic.tree import SymbolicTree

    model = SymbolicTree(robot)
    nv, m = model.tree.nv, len(robot.muscles)
    jacobian = expressions.body_jacobian(model)
    mass = jacobian.T @ expressions.body_mass(model, jacobian)
    rows = expressions.muscle_body_jacobian(model, None) @ jacobian
    outputs = (
        ("mass_matrix", (nv, nv), mass.T),
        ("coriolis", (nv,), jacobian.T @ expressions.body_coriolis(model)),
        ("gravity", (nv,), -(jacobian.T @ expressions.body_gravity(model))),
        ("muscle_lengths", (m,), expressions.muscle_kinematics(model, None)[0]),
        ("muscle_jacobian", (m, nv), rows.T),
    )
    return Kernel("update", expressions.Outputs(model).inputs, outputs)


@contextmanager
def _flags(way: str) -> Iterator[None]:
    """Let the compiler's own variable choose the optimisation: the last one counts."""
    levels = {"optimised_less": "-O1", "optimised_more": "-O3"}
    old = os.environ.get("CFLAGS")
    if way in levels:
        os.environ["CFLAGS"] = levels[way]
    try:
        yield
    finally:
        if way in levels:
            if old is None:
                del os.environ["CFLAGS"]
            else:
                os.environ["CFLAGS"] = old
