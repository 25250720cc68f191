"""``<myoMuscle>`` elements of CARDSflow and Roboy, rewritten as our muscle block.

A muscle is a sequence of ``<link name>`` with ``<viaPoint type>x y z</viaPoint>`` in the axes of
that link. Types and what they become:

=========== ===================================================================================
FIXPOINT    a point that the muscle passes: ``<via_point>``
SPHERICAL   a sphere of ``radius`` around the point: ``<wrap>`` over a ``<wrap_surface>``
CYLINDRICAL a cylinder of ``radius`` without ends, through the point along the link's z axis
MESH        the convex hull of the link's first mesh
=========== ===================================================================================

``state`` and ``revCounter`` are the state of CARDSflow's tracking of the wrapping; here the path
is the shortest one at every pose. ``<spanningJoint>`` is checked and has no other meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.sdf_tree import add, add_plugin
from cards_core.formats.sdf.elements import numbers as as_text
from cards_core.formats.sdf.muscle_path import SAME_PLACE
from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import attribute, known_names, numbers, parse_number
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.typing import Vector3

TENSION = (1.0, 500.0)
"""Limits of the tension of a muscle, [N]; the files state none."""

MUSCLE = "myoMuscle"


def muscle_elements(root: XmlElement) -> list[XmlElement]:
    """Return the muscles of a ``<cardsflow>`` or ``<plugin>`` element.

    Raises:
        DescriptionError: The root is another element, or has unknown ones beside the muscles.
    """
    if root.tag != "cardsflow":
        raise root.error("not a file with CARDSflow's muscles", "<cardsflow> as root")
    check_content(root, Content(many=frozenset({MUSCLE, "endEffector"})))
    return list(root.children(MUSCLE))


@dataclass
class MuscleRewriter:
    """Rewrites ``<myoMuscle>`` elements as a muscle block.

    Attributes:
        findings: Takes notes and warnings.
        links: Names of the links.
        joints: Names of the joints.
        meshes: Link to the path and scale of its first mesh, for points of type MESH.
        tension: Limits of all muscles, [N].
        origins: Link to the point that its points are relative to, in its frame, [m]; default the
            origin of its frame.
    """

    findings: FindingList
    links: Collection[str]
    joints: Collection[str]
    meshes: Mapping[str, tuple[str, str]]
    tension: tuple[float, float] = TENSION
    origins: Mapping[str, Vector3] = field(default_factory=dict)
    _surfaces: dict[tuple[str, ...], str] = field(default_factory=dict)

    def add_to(self, model: XmlElement, muscles: Iterable[XmlElement]) -> XmlElement | None:
        """Append the block to a ``<model>``; return it, None where there are no muscles.

        Raises:
            DescriptionError: A muscle is wrong; links and points are checked by the reader of the
                block.
        """
        plugin: XmlElement | None = None
        for element in muscles:
            plugin = add_plugin(model, element) if plugin is None else plugin
            self._muscle(element, plugin)
        return plugin

    def _muscle(self, element: XmlElement, plugin: XmlElement) -> None:
        check_content(element, _MUSCLE)
        name = attribute(element, "name")
        muscle = add(plugin, "muscle", element, name=name, type="cable")
        low, high = self.tension
        add(muscle, "tension", element, min=repr(low), max=repr(high))
        points = []
        for link in element.children("link"):
            check_content(link, _LINK)
            found = list(link.children("viaPoint"))
            if not found:
                raise link.error("has no <viaPoint>", "at least one")
            points += [(attribute(link, "name"), point) for point in found]
        for joint in element.children("spanningJoint"):
            check_content(joint, _JOINT)
            if joint.get("name") not in self.joints:
                self.findings.warn(
                    "joint-unknown",
                    f"muscle '{name}'",
                    f"spans joint '{shorten(joint.get('name', ''))}', which does not exist; "
                    "only a remark, its path counts",
                    at=joint,
                )
        before: tuple[str, XmlElement] | None = None
        for link_name, point in points:
            kind = attribute(point, "type")
            if kind not in _TYPES:
                raise point.error(f"type '{shorten(kind)}' is unknown", known_names(_TYPES))
            check_content(point, _POINT)
            if before is not None and self._same(before, (link_name, point)):
                self.findings.note(
                    "point-given-twice",
                    f"muscle '{name}'",
                    f"two points at the same place of link '{link_name}' are one",
                    at=point,
                )
                continue
            _TYPES[kind](self, muscle, link_name, point)
            before = (link_name, point)

    def _same(self, first: tuple[str, XmlElement], second: tuple[str, XmlElement]) -> bool:
        """Tell whether two neighbouring fixed points are at the same place of a link."""
        (link, a), (other, b) = first, second
        if link != other or {a.get("type"), b.get("type")} - set(_FIXED):
            return False
        return float(np.linalg.norm(numbers(a, 3) - numbers(b, 3))) < SAME_PLACE

    # Types of points ------------------------------------------------------------------------

    def _fixed(self, muscle: XmlElement, link: str, point: XmlElement) -> None:
        """Add a point that the muscle passes."""
        text = point.text
        if link in self.origins:
            text = as_text(*self._position(link, point))
        add(muscle, "via_point", point, text, link=link)

    def _sphere(self, muscle: XmlElement, link: str, point: XmlElement) -> None:
        """Add a wrap over a sphere."""
        radius = self._radius(point)
        self._wrap(muscle, link, point, "sphere", {"radius": radius})

    def _cylinder(self, muscle: XmlElement, link: str, point: XmlElement) -> None:
        """Add a wrap over a cylinder along the z axis of its link."""
        radius = self._radius(point)
        self._wrap(muscle, link, point, "cylinder", {"radius": radius})

    def _mesh(self, muscle: XmlElement, link: str, point: XmlElement) -> None:
        """Add a wrap over the convex hull of the mesh of its link."""
        if link not in self.meshes:
            raise point.error(
                f"wraps over the mesh of link '{shorten(link)}', which has none that was found",
                "a <collision> or <visual> of the link with a <mesh>, an STL or OBJ file",
            )
        uri, scale = self.meshes[link]
        self._wrap(muscle, link, point, "mesh", {"uri": uri, "scale": scale}, placed=False)

    def _position(self, link: str, point: XmlElement) -> Vector3:
        """Return a point in the frame of its link."""
        return numbers(point, 3) + self.origins.get(link, np.zeros(3))

    def _radius(self, point: XmlElement) -> str:
        if parse_number(attribute(point, "radius"), point, what="radius") <= 0.0:
            raise point.error("radius is not positive", "a length greater than 0, in m")
        return attribute(point, "radius")

    def _wrap(
        self,
        muscle: XmlElement,
        link: str,
        point: XmlElement,
        shape: str,
        sizes: Mapping[str, str],
        *,
        placed: bool = True,
    ) -> None:
        place = self._position(link, point) if placed else np.zeros(3)
        pose = as_text(*place, 0.0, 0.0, 0.0)
        key = (link, shape, pose, *sizes.values())
        plugin = muscle.parent
        assert plugin is not None
        if key not in self._surfaces:
            name = f"{link}_{shape}"
            taken = set(self._surfaces.values())
            while name in taken:
                name = f"{link}_{shape}_{len(taken) + 1}"
            surface = add(plugin, "wrap_surface", point, name=name, link=link, pose=pose)
            add(surface, shape, point, **sizes)
            self._surfaces[key] = name
        add(muscle, "wrap", point, surface=self._surfaces[key])
        turns = point.get("revCounter", "0").strip()
        if turns not in ("0", ""):
            self.findings.warn(
                "revolutions-ignored",
                f"muscle '{muscle.get('name', '')}'",
                f"revCounter {shorten(turns)}: a muscle wraps by less than one turn here",
                at=point,
            )
        if point.get("state", "0").strip() not in ("0", ""):
            self.findings.note(
                "wrap-state",
                f"muscle '{muscle.get('name', '')}'",
                "state of the wrapping not taken over: the path is the shortest at every pose",
                at=point,
            )


_Rewrite = Callable[[MuscleRewriter, XmlElement, str, XmlElement], None]

_FIXED = ("FIXPOINT", "FIXED")
_TYPES: Mapping[str, _Rewrite] = {
    **dict.fromkeys(_FIXED, MuscleRewriter._fixed),
    "SPHERICAL": MuscleRewriter._sphere,
    "CYLINDRICAL": MuscleRewriter._cylinder,
    "MESH": MuscleRewriter._mesh,
}
_MUSCLE = Content(many=frozenset({"link", "spanningJoint"}), attributes=frozenset({"name"}))
_LINK = Content(many=frozenset({"viaPoint"}), attributes=frozenset({"name"}))
_JOINT = Content(attributes=frozenset({"name"}), text=True)
_POINT = Content(attributes=frozenset({"type", "radius", "state", "revCounter"}), text=True)
