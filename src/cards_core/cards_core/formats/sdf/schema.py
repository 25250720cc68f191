"""Which SDFormat elements we read, which we pass over, and which we refuse, as one table.

Three kinds of children: *read* (with how often they may occur), *ignored* (no meaning for
kinematics, dynamics, drawing or muscles: sensors, lights, other plugins ...) and *refused* (they
would change the motion and we do not model them: passing over them would be wrong, silently).
Anything else is a mistake in the file. Names with a namespace prefix (``gz:...``) are extensions
of other programs and ignored, as SDFormat has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from cards_core.formats.sdf.values import known_names
from cards_core.formats.xml_lines import XmlElement, shorten

VERSIONS = ("1.9", "1.10", "1.11", "1.12")
"""SDFormat versions with the frame semantics and elements that this table describes."""

JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "universal", "ball")
"""Joint types that are read."""


@dataclass(frozen=True)
class Content:
    """What one element may hold.

    Attributes:
        once: Children that are read and may occur once.
        many: Children that are read and may occur any number of times.
        ignored: Children that are passed over.
        refused: Child to the reason why it is an error.
        attributes: Accepted attributes.
        text: True if the element's text is its value.
    """

    once: frozenset[str] = frozenset()
    many: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    text: bool = False


def _content(
    once: str = "",
    many: str = "",
    ignored: str = "",
    *,
    refused: Mapping[str, str] | None = None,
    attributes: str = "",
    text: bool = False,
) -> Content:
    words = (frozenset(part.split()) for part in (once, many, ignored, attributes))
    first, repeated, passed, accepted = words
    return Content(first, repeated, passed, refused or {}, accepted, text)


_INCLUDE = _content(
    "uri name pose static placement_frame", "plugin", "namespace", attributes="merge"
)
_AXIS = _content("xyz dynamics limit", refused={"mimic": "joints that mimic others are missing"})
_SHAPES = "box sphere cylinder capsule ellipsoid plane mesh empty"
_OTHER_SHAPES = {
    shape: f"the shape is not one of {_SHAPES.replace(' ', ', ')}"
    for shape in ("cone", "heightmap", "image", "polyline")
}
_SCREW = ("thread_pitch", "screw_thread_pitch", "gearbox_ratio", "gearbox_reference_body")
_SAVED = "saved states are not read: they would move the links"
_NUMBER = _content(text=True)

CONTENT: Mapping[str, Content] = {
    "sdf": _content("world", "model", "light actor", attributes="version"),
    "world": _content(
        "gravity",
        "model include frame joint",
        "audio wind magnetic_field atmosphere gui physics scene light actor plugin road "
        "spherical_coordinates population",
        refused={"state": _SAVED},
        attributes="name",
    ),
    "model": _content(
        "pose static",
        "link joint frame model include plugin",
        "self_collide allow_auto_disable enable_wind gripper",
        refused={"model_state": _SAVED},
        attributes="name canonical_link placement_frame namespace",
    ),
    "include": _INCLUDE,
    "frame": _content("pose", attributes="name attached_to"),
    "link": _content(
        "pose inertial gravity kinematic",
        "visual collision",
        "enable_wind self_collide must_be_base_link velocity_decay sensor projector audio_sink "
        "audio_source battery light particle_emitter",
        attributes="name",
    ),
    "inertial": _content(
        "mass pose inertia",
        ignored="density auto_inertia_params",
        refused={"fluid_added_mass": "added mass of a fluid is not modelled"},
        attributes="auto",
    ),
    "inertia": _content("ixx ixy ixz iyy iyz izz"),
    "visual": _content(
        "pose geometry material transparency",
        ignored="cast_shadows laser_retro visibility_flags meta layer plugin",
        attributes="name",
    ),
    "material": _content(
        "ambient diffuse",
        ignored="script shader render_order lighting specular shininess emissive double_sided pbr",
    ),
    "collision": _content(
        "pose geometry surface",
        ignored="laser_retro max_contacts density auto_inertia_params",
        attributes="name",
    ),
    "surface": _content("friction", ignored="bounce contact soft_contact"),
    "surface/friction": _content("ode", ignored="torsional bullet"),
    "ode": _content("mu", ignored="mu2 fdir1 slip1 slip2"),
    "geometry": _content(_SHAPES, refused=_OTHER_SHAPES),
    "box": _content("size"),
    "sphere": _content("radius"),
    "cylinder": _content("radius length"),
    "capsule": _content("radius length"),
    "ellipsoid": _content("radii"),
    "plane": _content("normal size"),
    "mesh": _content(
        "uri scale",
        ignored="convex_decomposition",
        refused={"submesh": "parts of a mesh file are not supported"},
        attributes="optimization",
    ),
    "empty": _content(),
    "joint": _content(
        "pose parent child axis axis2",
        ignored="physics sensor",
        refused=dict.fromkeys(_SCREW, "gearbox and screw joints are not supported"),
        attributes="name type",
    ),
    "axis": _AXIS,
    "axis2": _AXIS,
    "dynamics": _content("damping friction spring_reference spring_stiffness"),
    "limit": _content("lower upper effort velocity", ignored="stiffness dissipation"),
    "pose": _content(attributes="relative_to rotation_format degrees", text=True),
    "xyz": _content(attributes="expressed_in", text=True),
}  # fmt: skip
"""Content of every element we read; elements that are not listed hold one value as text."""


def check(element: XmlElement, *, tag: str | None = None) -> None:
    """Check an element's children, attributes and text against the table; not its descendants.

    Args:
        element: The element.
        tag: Entry of the table, where it is not the element's own name.

    Raises:
        DescriptionError: An unknown, refused or repeated child, an unknown attribute, or text
            where there is none. The message lists what is accepted.
    """
    check_content(element, CONTENT.get(tag or element.tag, _NUMBER))


def check_content(element: XmlElement, content: Content) -> None:
    """Check an element against one entry of a table. Raises `DescriptionError`."""
    seen: set[str] = set()
    stray = "" if content.text else (element.text or "")
    for child in element:
        name = child.tag
        stray += child.tail or ""
        if name in content.many or name in content.ignored or ":" in name:
            continue
        if name in content.refused:
            raise child.error(content.refused[name], f"no <{name}>")
        if name not in content.once:
            raise _unknown(element, child, content.once | content.many, content.ignored)
        if name in seen:
            raise child.error("given twice", f"one <{name}>")
        seen.add(name)
    if stray.strip():
        raise element.error(f"text '{shorten(stray.strip(), 30)}' has no meaning here", "elements")
    for name in element.attrib:
        if name not in content.attributes and ":" not in name and name != "xmlns":
            close = get_close_matches(name, content.attributes, n=1) if len(name) < 80 else []
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise element.error(
                f"unknown attribute '{shorten(name)}'{hint}", known_names(content.attributes)
            )


def _unknown(
    parent: XmlElement, child: XmlElement, accepted: frozenset[str], ignored: frozenset[str]
) -> Exception:
    name = child.tag
    close = get_close_matches(name, accepted | ignored, n=1) if len(name) < 80 else []
    hint = f"; did you mean <{close[0]}>?" if close else ""
    return child.error(
        f"unknown element in {parent.label}{hint}",
        known_names(accepted) if accepted else "text only",
        element=f"<{shorten(name)}>",
    )
