"""Physics engines of Gazebo."""

from __future__ import annotations

ENGINE_OF_WORLD = "world"
"""The engine that the world names; Gazebo's default, DART, where it names none."""

PHYSICS_ENGINES = (ENGINE_OF_WORLD, "dartsim", "bullet-featherstone")
"""Those that have joints of all kinds, commanded velocities and wrenches on links."""


def engine_arguments(engine: str) -> list[str]:
    """Return the arguments of ``gz sim`` that choose an engine of `PHYSICS_ENGINES`."""
    if engine == ENGINE_OF_WORLD:
        return []
    return ["--physics-engine", f"gz-physics-{engine}-plugin"]
