"""The quantities that can be compiled, by the names that equations have for them.

Body space stacks p bodies with six rows each: velocity of the centre of mass and angular velocity,
both in body axes. A body is a node of the tree that carries at least one link, with everything
attached to it. With the twist ``xd = W qd``:

    M = W' M_b    C = W' C_b    G = -W' G_b    L = V W    ld = V xd

Source: [Lau2016]_; the model-compilation paper calls the first four body-space variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cards_core.checks import check_choice, check_kind
from cards_core.errors import CardsError
from cards_core.robot.model import WORLD_NODE, Tree


@dataclass(frozen=True)
class Variable:
    """One quantity.

    Attributes:
        name: As in equations.
        title: The name that arrays have elsewhere, e.g. in `DynamicsState`.
        shape: Of the array, with ``nv``, ``m`` (muscles), ``6p`` (bodies) or numbers.
        text: What it is, in one line.
        operational: Whether it belongs to a frame.
    """

    name: str
    title: str
    shape: tuple[str | int, ...]
    text: str
    operational: bool = False


_ALL = (
    Variable("M", "mass_matrix", ("nv", "nv"), "mass matrix"),
    Variable("C", "coriolis", ("nv",), "Coriolis and centrifugal forces, the vector C(q, qd)"),
    Variable("G", "gravity", ("nv",), "gravity forces"),
    Variable("l", "muscle_lengths", ("m",), "muscle lengths"),
    Variable("L", "muscle_jacobian", ("m", "nv"), "muscle Jacobian dl/dq"),
    Variable("Ldot_qd", "muscle_bias", ("m",), "dL/dt qd: muscle accelerations at qdd = 0"),
    Variable("dL_dq", "jacobian_gradient", ("m", "nv", "nv"), "dL/dq, for stiffness"),
    Variable("M_inv", "inverse_mass", ("nv", "nv"), "inverse of the mass matrix"),
    Variable("M_b", "body_mass", ("6p", "nv"), "blkdiag(m E, I) W, body space"),
    Variable("C_b", "body_coriolis", ("6p",), "forces of the bodies at qdd = 0, body space"),
    Variable("G_b", "body_gravity", ("6p",), "weights of the bodies, body space"),
    Variable("W", "body_jacobian", ("6p", "nv"), "joint-to-body Jacobian, xd = W qd"),
    Variable("V", "muscle_body_jacobian", ("m", "6p"), "muscle-to-body Jacobian, ld = V xd"),
    Variable("y", "position", (3,), "origin of the operational frame", operational=True),
    Variable("R", "rotation", (3, 3), "operational frame to world", operational=True),
    Variable("J", "jacobian", (6, "nv"), "Jacobian of the operational frame", operational=True),
    Variable("Jdot_qd", "bias", (6,), "dJ/dt qd of the operational frame", operational=True),
)

VARIABLES = {variable.name: variable for variable in _ALL}
"""All quantities by name."""

DEFAULT = ("M", "C", "G", "l", "L")
"""What controllers and simulators use, and what compiles fastest for what it gives."""


def chosen(names: str | Iterable[str]) -> tuple[Variable, ...]:
    """Return variables by name, each once, in the order they were asked for.

    Args:
        names: Names, or one text with commas between them.

    Raises:
        UnknownNameError: A name that does not exist.
        CardsError: No name at all.
    """
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",") if part.strip()]
    check_kind(names, Iterable, "emit", "names of quantities")
    unique = list(dict.fromkeys(names))
    for name in unique:
        check_choice(name, "quantity", VARIABLES)
    if not unique:
        raise CardsError(f"no quantity is named (expected: some of {', '.join(VARIABLES)})")
    return tuple(VARIABLES[name] for name in unique)


def body_nodes(tree: Tree) -> list[int]:
    """Return the nodes that carry at least one link, in order: the bodies of body space."""
    carried = {tree.link_node[link.name][0] for link in tree.robot.links}
    return sorted(carried - {WORLD_NODE})


def array_shape(variable: Variable, nv: int, m: int, bodies: int) -> tuple[int, ...]:
    """Return the shape of a variable's array for nv velocities, m muscles and p bodies.

    Args:
        variable: The variable.
        nv: Number of velocities.
        m: Number of muscles.
        bodies: p.
    """
    sizes = {"nv": nv, "m": m, "6p": 6 * bodies}
    dims: Sequence[str | int] = variable.shape
    return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in dims)
