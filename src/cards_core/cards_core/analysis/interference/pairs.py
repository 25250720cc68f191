"""The options of interference, and the pairs of muscle pieces and bodies that are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.analysis.conditions.base import ConditionError, Options, option
from cards_core.analysis.interference.distances import Body, body_distances
from cards_core.errors import UnknownNameError
from cards_core.paths.layout import PathLayout
from cards_core.robot.elements import WORLD, Pulley
from cards_core.robot.model import Tree
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

PAIRS = ("all", "muscles", "links")
SHAPES = ("collisions", "visuals", "either")
MESHES = ("hull", "skip")


@dataclass(frozen=True, kw_only=True)
class InterferenceOptions(Options):
    """Options of the condition ``interference``; see ``docs/interference.md``."""

    min_distance: float = option(
        0.0,
        "Smallest distance that is allowed, from surface to surface; with 0 nothing may touch.",
        "m",
        lower=0.0,
    )
    diameter: float = option(
        0.0, "Diameter of all muscles; descriptions do not state any.", "m", lower=0.0
    )
    diameters: tuple[float, ...] = option(
        (),
        "Diameter of each muscle, in the robot's order, in place of one for all.",
        "m",
        lower=0.0,
        default_text="none",
    )
    pairs: str = option(
        "all", "What is compared: muscles with muscles, with links, or all.", choices=PAIRS
    )
    shapes: str = option(
        "collisions",
        "What a link is: its collisions, its visuals, or visuals where it has no collisions.",
        choices=SHAPES,
    )
    meshes: str = option(
        "hull", "What a mesh is: its convex hull, or, with skip, nothing.", choices=MESHES
    )
    attachment_clearance: float = option(
        0.02,
        "A shape this close to an end of a muscle is what it is attached to; up to here it may "
        "touch it, and further on it must not be in it.",
        "m",
        lower=0.0,
    )
    own_shapes: bool = option(
        True, "Whether muscles must not be in the shapes that they are attached to."
    )
    shared_body_clearance: float = option(
        0.0,
        "Two muscles are shortened by this at ends on one body when compared with each other.",
        "m",
        lower=0.0,
    )
    ignore: tuple[str, ...] = option(
        (),
        "Pairs that are left out: `muscle:muscle` or `muscle:link`.",
        kind=str,
        default_text="none",
    )

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ParameterError: A value has the wrong type or is out of its range.
            ConditionError: An entry of `ignore` is no pair.
        """
        super().__post_init__()
        for pair in self.ignore:
            if ":" not in pair:
                raise ConditionError(
                    f"option 'ignore' has '{pair}', expected 'muscle:muscle' or 'muscle:link'"
                )


SAME_PLACE = 1e-6
"""Attachment points of two muscles that are closer than this on one body are one point, [m]."""


@dataclass(frozen=True, eq=False)
class End:
    """One end of a straight piece.

    Attributes:
        link: Index of the link it is on, the number of links for the world.
        node: Rigid body that this link belongs to, an index of `Tree.nodes`; links that are
            fixed to each other are one.
        position: In coordinates of the node, shape (3,), [m]; None on a wrap surface.
        reach: How far from `position` it may be, [m]: the diameter of a pulley's wheel, else 0.
    """

    link: int
    node: int
    position: Vector3 | None
    reach: float = 0.0


@dataclass(frozen=True, eq=False)
class Piece:
    """A straight piece of a muscle between the path points `point` and ``point + 1``."""

    muscle: int
    point: int
    ends: tuple[End, End]

    @property
    def nodes(self) -> tuple[int, int]:
        """Rigid bodies of both ends."""
        return self.ends[0].node, self.ends[1].node


@dataclass(frozen=True, eq=False)
class Pair:
    """Two things whose distance counts.

    Attributes:
        first: Index of a piece.
        second: Index of a piece, or of a body.
        cuts: By how much the ends are shortened: of the first piece, of the second, [m].
        radii: What is taken off the distance of the centre lines, [m].
        own: Whether it counts only where it penetrates, because an end is attached to the body.
    """

    first: int
    second: int
    cuts: tuple[float, float, float, float]
    radii: float
    own: bool = False


def pieces_of(layout: PathLayout, tree: Tree) -> tuple[Piece, ...]:
    """Return the straight pieces of all muscles.

    Args:
        layout: Paths with links as frames.
        tree: Says which links are one rigid body.
    """
    names = [*(link.name for link in tree.robot.links), WORLD]
    contacts = {k: c.element for c in layout.contacts for k in (c.point, c.point + 1)}

    def end(point: int) -> End:
        link = int(layout.point_frame[point])
        node, pose = tree.link_node[names[link]]
        element = contacts.get(point)
        if isinstance(element, Pulley):
            return End(link, node, pose.apply(element.position), 2.0 * element.radius)
        position = None if element else pose.apply(layout.point_position[point])
        return End(link, node, position)

    return tuple(
        Piece(int(muscle), int(point), (end(int(point)), end(int(point) + 1)))
        for muscle, point in zip(layout.piece_muscle, layout.start, strict=True)
    )


def piece_pairs(
    pieces: tuple[Piece, ...], radii: Array, options: InterferenceOptions, ignored: set[object]
) -> list[Pair]:
    """Return the pairs of pieces of different muscles.

    Left out: pieces that share an attachment point, where they meet by construction, and pieces
    that all lie on one rigid body, whose distance never changes.

    Args:
        pieces: Of all muscles.
        radii: Of every muscle, shape (m,), [m].
        options: As given.
        ignored: What `ignored_pairs` gives.
    """
    out = []
    for i, a in enumerate(pieces):
        for j, b in enumerate(pieces[:i]):
            muscles = frozenset((a.muscle, b.muscle))
            if len(muscles) == 1 or muscles in ignored or len({*a.nodes, *b.nodes}) == 1:
                continue
            if any(_same_place(x, y) for x in a.ends for y in b.ends):
                continue
            cut = options.shared_body_clearance
            a0, a1 = (cut if x.node in b.nodes else 0.0 for x in a.ends)
            b0, b1 = (cut if y.node in a.nodes else 0.0 for y in b.ends)
            radius = float(radii[a.muscle] + radii[b.muscle])
            out.append(Pair(i, j, (a0, a1, b0, b1), radius))
    return out


def body_pairs(
    pieces: tuple[Piece, ...],
    bodies: tuple[Body, ...],
    tree: Tree,
    *,
    radii: Array,
    options: InterferenceOptions,
    ignored: set[object],
) -> list[Pair]:
    """Return the pairs of a piece and a body.

    Left out: a piece with both ends on one rigid body with the shape, and a piece that comes from
    or goes to a wrap surface of its link: the muscle slides on it there. A shape that an end is
    attached to (it lies in it, or not further away than the clearance) is touched by
    construction: the shortened piece must not penetrate, and no distance is asked for.

    Args:
        pieces: Of all muscles.
        bodies: Of all links.
        tree: Says which links are one rigid body.
        radii: Of every muscle, shape (m,), [m].
        options: As given.
        ignored: What `ignored_pairs` gives.
    """
    clearance = options.attachment_clearance
    out = []
    for i, piece in enumerate(pieces):
        for j, body in enumerate(bodies):
            node, pose = tree.link_node[tree.robot.links[body.link].name]
            if (piece.muscle, body.link) in ignored or piece.nodes == (node, node):
                continue
            if any(end.position is None and end.link == body.link for end in piece.ends):
                continue
            attached = [
                end.node == node and _attached(end, body, pose, clearance) for end in piece.ends
            ]
            if any(attached) and not options.own_shapes:
                continue
            a, b = (clearance if is_attached else 0.0 for is_attached in attached)
            radius = float(radii[piece.muscle])
            out.append(Pair(i, j, (a, b, 0.0, 0.0), radius, own=any(attached)))
    return out


def _attached(end: End, body: Body, link: Pose, clearance: float) -> bool:
    """Whether an end is no further than the clearance from a shape of the same rigid body."""
    if end.position is None:
        return False
    point = link.inverse().apply(end.position)
    return bool(body_distances(np.stack([point, point]), body)[0] <= clearance + end.reach)


def ignored_pairs(tree: Tree, options: InterferenceOptions) -> set[object]:
    """Return the pairs of `InterferenceOptions.ignore` as indices.

    Two muscles are a frozenset of their indices, a muscle and a link are a tuple.

    Raises:
        UnknownNameError: The first is no muscle, or the second neither a muscle nor a link.
        ConditionError: A muscle with itself.
    """
    muscles = {muscle.name: i for i, muscle in enumerate(tree.robot.muscles)}
    links = {link.name: i for i, link in enumerate(tree.robot.links)}
    out: set[object] = set()
    for pair in options.ignore:
        first, second = _split(pair, muscles)
        if first == second:
            raise ConditionError(f"option 'ignore' has '{pair}', expected two different names")
        if second in muscles:
            out.add(frozenset((muscles[first], muscles[second])))
        elif second in links:
            out.add((muscles[first], links[second]))
        else:
            raise UnknownNameError("muscle or link", second, (*muscles, *links))
    return out


def radii_of(tree: Tree, options: InterferenceOptions) -> Array:
    """Return the radius of every muscle, shape (m,), [m].

    Raises:
        ConditionError: Diameters for another number of muscles.
    """
    count = len(tree.robot.muscles)
    if options.diameters and len(options.diameters) != count:
        raise ConditionError(
            f"option 'diameters' has {len(options.diameters)} numbers, expected one for each of "
            f"the {count} muscles"
        )
    return 0.5 * np.array(options.diameters or [options.diameter] * count, dtype=float)


def _split(pair: str, muscles: dict[str, int]) -> tuple[str, str]:
    """Split at a colon that follows a muscle's name; names of nested models have colons too."""
    for place, letter in enumerate(pair):
        if letter == ":" and pair[:place] in muscles:
            return pair[:place], pair[place + 1 :]
    raise UnknownNameError("muscle", pair.partition(":")[0], muscles)


def _same_place(a: End, b: End) -> bool:
    if a.node != b.node or a.position is None or b.position is None or a.reach or b.reach:
        return False
    return bool(np.linalg.norm(a.position - b.position) <= SAME_PLACE)
