"""Muscles of a URDF from a YAML file, with the words of the muscle block of an SDF.

.. code-block:: yaml

    wrap_surfaces:
      elbow: {link: upper_arm, cylinder: {radius: 0.02}, pose: [0, 0, -0.3, 1.57, 0, 0]}
    muscles:
      biceps:
        type: cable                     # default; parameters: those of the type
        tension: {min: 5, max: 200}
        path:
          - {link: torso, point: [0.05, 0, 0]}
          - {wrap: elbow, side: [0.03, 0, -0.3]}
          - {link: forearm, point: [0.03, 0, -0.05]}
    frames: {hand: {link: forearm, pose: [0, 0, -0.25, 0, 0, 0]}}
    operational_frame: hand
    home: {elbow: 0.5}
    motors: [wrist]

It becomes the elements of that block, so that everything is checked by its reader, and errors name
the line of the YAML file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cards_core.formats.imports.sdf_tree import add, add_plugin
from cards_core.formats.sdf.muscle_path import SHAPES
from cards_core.formats.xml_lines import XmlElement
from cards_core.yaml_fields import Field, read_yaml

_TOP = ("muscles", "wrap_surfaces", "frames", "operational_frame", "home", "motors")
_MUSCLE = (
    "type", "tension", "parameters", "control", "friction_speed", "contact", "friction", "path",
)  # fmt: skip
_PATH: Mapping[str, tuple[str, ...]] = {
    "point": ("link", "friction"),
    "wrap": ("side", "inside", "friction"),
    "pulley": ("link", "axis", "radius"),
}


def add_muscles(
    model: XmlElement,
    path: Path,
    *,
    link: Callable[[str], str],
    joint: Callable[[str], str],
) -> XmlElement:
    """Append the muscle block, and frames, to a ``<model>``; return the block.

    Args:
        model: The model.
        path: YAML file.
        link: Gives our name of a link of the URDF.
        joint: Gives our name of a joint of the URDF.

    Raises:
        DescriptionError: The file cannot be read, or has an unknown key.
    """
    document = read_yaml(path)
    top = Field(document, (), document.data)
    keys = top.mapping(_TOP)
    if not {"muscles", "motors", "wrap_surfaces"} & set(keys):
        raise top.error("has no 'muscles'", "a mapping of muscles")
    reader = _Reader(link, joint)
    plugin = add_plugin(model, _like(top))
    for name, field in _entries(top, "frames"):
        reader.frame(model, name, field)
    for name, field in _entries(top, "wrap_surfaces"):
        reader.surface(plugin, name, field)
    for name, field in _entries(top, "muscles"):
        reader.muscle(plugin, name, field)
    if "operational_frame" in keys:
        field = top["operational_frame"]
        add(plugin, "operational_frame", _like(field), link(field.label()))
    for name, field in _entries(top, "home"):
        add(plugin, "home", _like(field), _text(field), joint=joint(name))
    if "motors" in keys:
        for field in top["motors"].items(at_least=0):
            add(plugin, "motor", _like(field), joint=joint(field.label()))
    return plugin


def _entries(top: Field, key: str) -> list[tuple[str, Field]]:
    if not top.has(key):
        return []
    field = top[key]
    return [(name, field[name]) for name in field.mapping()]


def _like(field: Field) -> XmlElement:
    """Return an element that stands where a value of the YAML file stands."""
    element = XmlElement("yaml")
    element.source = field.document.source
    element.line = field.document.line(field.place) or 0
    return element


def _text(field: Field) -> str:
    """Return a number, a list of numbers, a flag or a text as XML has it."""
    value: Any = field.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(field.number())
    if isinstance(value, list):
        return " ".join(repr(x) for x in field.vector().tolist())
    return field.text()


class _Reader:
    """Turns fields into elements.

    Args:
        link: Gives our name of a link of the URDF.
        joint: Gives our name of a joint of the URDF.
    """

    def __init__(self, link: Callable[[str], str], joint: Callable[[str], str]) -> None:
        self.link = link
        self.joint = joint

    def frame(self, model: XmlElement, name: str, field: Field) -> None:
        """Add a ``<frame>`` to the model."""
        keys = field.mapping(("link", "pose"))
        attached = self.link(field["link"].label())
        frame = add(model, "frame", _like(field), name=name, attached_to=attached)
        if "pose" in keys:
            add(frame, "pose", _like(field["pose"]), _vector(field["pose"], 6, _POSE))

    def surface(self, plugin: XmlElement, name: str, field: Field) -> None:
        """Add a ``<wrap_surface>``."""
        keys = field.mapping(("link", "pose", *SHAPES))
        link = self.link(field["link"].label())
        element = add(plugin, "wrap_surface", _like(field), name=name, link=link)
        if "pose" in keys:
            element.set("pose", _vector(field["pose"], 6, _POSE))
        for shape in SHAPES:
            if shape in keys:
                self._attributes(element, shape, field[shape])

    def muscle(self, plugin: XmlElement, name: str, field: Field) -> None:
        """Add a ``<muscle>``."""
        keys = field.mapping(_MUSCLE)
        element = add(plugin, "muscle", _like(field), name=name)
        for key in ("type", "friction_speed", "contact", "friction"):
            if key in keys:
                element.set(key, _text(field[key]))
        for key in ("tension", "parameters", "control"):
            if key in keys:
                self._attributes(element, key, field[key])
        for item in field["path"].items():
            self._path_element(element, item)

    def _attributes(self, parent: XmlElement, tag: str, field: Field) -> None:
        """Add an element whose attributes are the values of a mapping, its children mappings."""
        element = add(parent, tag, _like(field))
        for key in field.mapping():
            inner = field[key]
            if isinstance(inner.value, Mapping):
                self._attributes(element, key, inner)
            else:
                element.set(key, _text(inner))

    def _path_element(self, muscle: XmlElement, field: Field) -> None:
        keys = field.mapping({*_PATH, *(key for others in _PATH.values() for key in others)})
        kinds = [kind for kind in _PATH if kind in keys]
        if len(kinds) != 1:
            raise field.error(
                f"has {' and '.join(kinds) or 'no place'}", f"one of {', '.join(_PATH)}"
            )
        kind = kinds[0]
        field.mapping((kind, *_PATH[kind]))
        tag = "via_point" if kind == "point" else kind
        element = add(muscle, tag, _like(field))
        if kind == "wrap":
            element.set("surface", field["wrap"].label())
        else:
            element.text = _vector(field[kind], 3, "x, y, z")
            element.set("link", self.link(field["link"].label()))
        for key in _PATH[kind]:
            if key in keys and key != "link":
                element.set(key, _text(field[key]))


_POSE = "x, y, z, roll, pitch, yaw"


def _vector(field: Field, size: int, what: str) -> str:
    return " ".join(repr(x) for x in field.vector(size, what).tolist())
