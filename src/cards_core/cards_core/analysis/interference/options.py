"""What counts as interference: distances, clearances, and which pairs are looked at."""

from __future__ import annotations

from dataclasses import dataclass

from cards_core.analysis.conditions.options import ConditionError, Options, option

PAIRS = ("all", "muscles", "links")
SHAPES = ("collisions", "visuals", "either")
MESHES = ("hull", "skip")


@dataclass(frozen=True, kw_only=True)
class InterferenceOptions(Options):
    """Options of the condition ``interference``; see ``docs/interference.md``."""

    min_distance: float = option(
        "m",
        "smallest distance that is allowed, from surface to surface; with 0 nothing may touch",
        0.0,
        minimum=0.0,
    )
    diameter: float = option("m", "of all muscles", 0.0, minimum=0.0)
    diameters: tuple[float, ...] = option(
        "m", "of each muscle, in the robot's order, in place of one for all", (), minimum=0.0
    )
    pairs: str = option(
        "", "what is compared: muscles with muscles, with links, or all", "all", choices=PAIRS
    )
    shapes: str = option(
        "",
        "what a link is: its collisions, its visuals, or visuals where it has no collisions",
        "collisions",
        choices=SHAPES,
    )
    meshes: str = option("", "what a mesh is: its convex hull, or nothing", "hull", choices=MESHES)
    attachment_clearance: float = option(
        "m",
        "a shape this close to an end of a muscle is what it is attached to; up to here it may "
        "touch it, and further on it must not be in it",
        0.02,
        minimum=0.0,
    )
    own_shapes: bool = option(
        "", "whether muscles must not be in the shapes that they are attached to", True
    )
    shared_body_clearance: float = option(
        "m",
        "two muscles are shortened by this at ends on one body when compared with each other",
        0.0,
        minimum=0.0,
    )
    ignore: tuple[str, ...] = option(
        "", "pairs that are left out, 'muscle:muscle' or 'muscle:link'", ()
    )

    def __post_init__(self) -> None:
        """Check every field. Raises `ConditionError`."""
        super().__post_init__()
        for pair in self.ignore:
            if ":" not in pair:
                raise ConditionError(
                    f"option 'ignore' has '{pair}', expected 'muscle:muscle' or 'muscle:link'"
                )
