"""Surfaces, solvers and helpers of the wrapping tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cards_core.paths.wrapping.closed_forms import (
    Contact,
    cylinder_contact,
    pulley_contact,
    sphere_contact,
)

R = 0.1
SIDE = np.array([0.05, 0.2, -0.1])
PULLEY_POSITION, PULLEY_AXIS = np.array([0.01, -0.02, 0.03]), np.array([0.36, 0.48, 0.8])

Solver = Callable[[np.ndarray, np.ndarray], Contact]

SOLVERS: dict[str, Solver] = {
    "sphere": lambda p, q: sphere_contact(p, q, R),
    "sphere side": lambda p, q: sphere_contact(p, q, R, SIDE),
    "sphere inside": lambda p, q: sphere_contact(p, q, R, inside=True),
    "cylinder": lambda p, q: cylinder_contact(p, q, R),
    "cylinder side": lambda p, q: cylinder_contact(p, q, R, side=SIDE),
    "bore": lambda p, q: cylinder_contact(p, q, R, inside=True),
}
FINITE: dict[str, Solver] = {
    "finite cylinder": lambda p, q: cylinder_contact(p, q, R, 0.2, SIDE),
    "finite bore": lambda p, q: cylinder_contact(p, q, R, 0.2, inside=True),
}
PULLEY: dict[str, Solver] = {
    "pulley": lambda p, q: pulley_contact(PULLEY_POSITION, PULLEY_AXIS, R, q),
}


def path_length(p: np.ndarray, q: np.ndarray, contact: Contact) -> float:
    return float(
        np.linalg.norm(contact.start - p) + contact.length + np.linalg.norm(q - contact.end)
    )


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def row(contact: Contact) -> np.ndarray:
    return contact.row(np.eye(3), np.zeros(3))


def random_ends(rng: np.random.Generator, flat: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two points outside the sphere, or outside the cylinder if flat."""
    ends = []
    for _ in range(2):
        point = rng.normal(size=3)
        size = np.linalg.norm(point[:2] if flat else point)
        ends.append(point / size * R * (1.0 + 10.0 ** rng.uniform(-2, 0.7)))
    return ends[0], ends[1]
