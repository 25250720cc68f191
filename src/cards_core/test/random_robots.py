"""Random robots for property tests: trees of every joint kind with muscles between any links."""

from __future__ import annotations

import numpy as np

from cards_core.description.model import (
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Robot,
    ViaPoint,
)
from cards_core.spatial import Pose, quaternion_matrix

KINDS = ("fixed", "revolute", "prismatic", "universal", "ball", "planar", "free")


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    return quaternion_matrix(rng.normal(size=4))


def random_pose(rng: np.random.Generator) -> Pose:
    return Pose(random_rotation(rng), rng.uniform(-0.4, 0.4, 3))


def random_inertia(rng: np.random.Generator) -> Inertia:
    """A box with random density: always physical."""
    size = rng.uniform(0.05, 0.4, 3) ** 2
    mass = rng.uniform(0.2, 3.0)
    principal = mass / 12.0 * (size.sum() - size)
    rotation = random_rotation(rng)
    return Inertia(mass, rng.uniform(-0.2, 0.2, 3), rotation @ np.diag(principal) @ rotation.T)


def random_joint(rng: np.random.Generator, kind: str, parent: str, child: str, name: str) -> Joint:
    unit = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    count = {"revolute": 1, "prismatic": 1, "universal": 2, "planar": 3}.get(kind, 0)
    axes = tuple(JointAxis(unit[:, i]) for i in range(count))
    # a free body's coordinates are relative to its placement: keep that general too
    return Joint(name, kind, parent, child, random_pose(rng), random_pose(rng), axes)


def random_robot(
    seed: int, *, n_links: int = 5, n_muscles: int = 4, kinds: tuple[str, ...] = KINDS
) -> Robot:
    """Return a robot of ``n_links`` links joined at random; first joint is never fixed."""
    rng = np.random.default_rng(seed)
    links = tuple(Link(f"link{i}", random_inertia(rng)) for i in range(n_links))
    joints = []
    for i in range(n_links):
        parent = WORLD if i == 0 else links[rng.integers(i)].name
        if i > 1 and rng.random() < 0.15:
            parent = WORLD
        choice = [k for k in kinds if i or k != "fixed"]
        kind = choice[rng.integers(len(choice))]
        joints.append(random_joint(rng, kind, parent, links[i].name, f"joint{i}"))
    names = [WORLD, *(link.name for link in links)]
    muscles = []
    for i in range(n_muscles):
        count = int(rng.integers(2, 5))
        path = tuple(
            ViaPoint(names[rng.integers(len(names))], rng.uniform(-0.5, 0.5, 3))
            for _ in range(count)
        )
        muscles.append(Muscle(f"muscle{i}", path, 1.0, 100.0))
    return Robot(
        name=f"random{seed}",
        links=links,
        joints=tuple(joints),
        muscles=tuple(muscles),
        frames=(Frame("tool", links[-1].name, random_pose(rng)),),
        operational_frame="tool",
    )
