"""What ``<gazebo>``, ``<transmission>`` and ``<ros2_control>`` of a URDF mean here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cards_core.formats.imports.findings import FindingList
from cards_core.formats.sdf.values import boolean, parse_number, text_of
from cards_core.formats.xml_lines import XmlElement, shorten

Colour = tuple[float, float, float, float]

MATERIALS: Mapping[str, Colour] = {
    "black": (0.1, 0.1, 0.1, 1.0),
    "white": (1.0, 1.0, 1.0, 1.0),
    "grey": (0.6, 0.6, 0.6, 1.0),
    "darkgrey": (0.3, 0.3, 0.3, 1.0),
    "lightgrey": (0.8, 0.8, 0.8, 1.0),
    "red": (0.8, 0.1, 0.1, 1.0),
    "green": (0.1, 0.7, 0.1, 1.0),
    "blue": (0.1, 0.2, 0.8, 1.0),
    "yellow": (0.9, 0.9, 0.1, 1.0),
    "orange": (1.0, 0.5, 0.1, 1.0),
    "purple": (0.5, 0.1, 0.6, 1.0),
    "turquoise": (0.1, 0.8, 0.8, 1.0),
    "gold": (0.8, 0.65, 0.2, 1.0),
    "wood": (0.65, 0.45, 0.25, 1.0),
}
"""Colours of ``Gazebo/NAME``, in lower case; about what Gazebo's scripts draw."""

_SPRINGS = ("springStiffness", "springReference")
_NO_WEIGHT = {"gravity": False, "turnGravityOff": True}


@dataclass
class GazeboBlocks:
    """What the extensions of a URDF say.

    Attributes:
        findings: Takes notes and warnings.
        friction: Link to the friction coefficient of its collisions.
        colours: Link to the colour of its visuals.
        plugins: ``<plugin>`` elements of the robot.
        static: Whether the robot is held by the world.
    """

    findings: FindingList
    friction: dict[str, float] = field(default_factory=dict)
    colours: dict[str, Colour] = field(default_factory=dict)
    plugins: list[XmlElement] = field(default_factory=list)
    static: bool = False

    def read(self, robot: XmlElement) -> None:
        """Read all ``<gazebo>`` elements of a ``<robot>``.

        Raises:
            DescriptionError: A number or flag that decides is none.
        """
        links = {item.get("name") for item in robot.children("link")}
        joints = {item.get("name") for item in robot.children("joint")}
        for block in robot.children("gazebo"):
            name = block.get("reference")
            if name is not None and name not in links | joints:
                self._warn(
                    "gazebo-reference",
                    block,
                    f"reference to '{shorten(name)}', which does not exist: left out",
                )
                continue
            for child in block:
                if name is None:
                    self._of_robot(child)
                elif name in links:
                    self._of_link(name, child)
                else:
                    self._of_joint(name, child)

    def _of_robot(self, child: XmlElement) -> None:
        if child.tag == "plugin":
            self.plugins.append(child)
        elif child.tag == "static":
            self.static = boolean(text_of(child), child)
        else:
            self._ignored(child, "the robot")

    def _of_link(self, name: str, child: XmlElement) -> None:
        if child.tag in ("mu1", "mu"):
            value = parse_number(text_of(child) or child.get("value", ""), child)
            if value < 0.0:
                raise child.error(f"{value:g} is negative", "a friction coefficient")
            self.friction[name] = value
        elif child.tag == "material":
            material = text_of(child).rpartition("/")[2].lower()
            if material in MATERIALS:
                self.colours[name] = MATERIALS[material]
            else:
                self._ignored(child, f"link '{name}'")
        elif child.tag in _NO_WEIGHT:
            if boolean(text_of(child), child) is _NO_WEIGHT[child.tag]:
                self._warn("gravity-acts", child, f"link '{shorten(name)}' has weight here")
        elif child.tag == "static":
            self.static = self.static or boolean(text_of(child), child)
        else:
            self._ignored(child, f"link '{name}'")

    def _of_joint(self, name: str, child: XmlElement) -> None:
        if child.tag in _SPRINGS and parse_number(text_of(child), child) != 0.0:
            self._warn(
                "joint-spring-left-out",
                child,
                f"spring of joint '{shorten(name)}' is left out",
            )
        else:
            self._ignored(child, f"joint '{name}'")

    def _ignored(self, child: XmlElement, subject: str) -> None:
        self.findings.note(
            "gazebo-ignored",
            shorten(subject),
            f"<{shorten(child.tag)}> in <gazebo> has no meaning here",
            at=child,
        )

    def _warn(self, code: str, element: XmlElement, message: str) -> None:
        self.findings.warn(code, "<gazebo>", message, at=element)


def transmission_joints(robot: XmlElement) -> Iterator[tuple[str, XmlElement]]:
    """Yield name and element of every joint that an actuator drives, each once.

    These are those in a ``<transmission>``, and those with a ``<command_interface>`` in
    ``<ros2_control>``.
    """
    seen = set()
    for block in robot.children("transmission", "ros2_control"):
        for joint in block.children("joint"):
            name = joint.get("name", "").strip()
            driven = block.tag == "transmission" or joint.child("command_interface") is not None
            if driven and name and name not in seen:
                seen.add(name)
                yield name, joint
