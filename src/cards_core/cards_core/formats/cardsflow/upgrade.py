"""SDF 1.5 to 1.8, as Gazebo classic reads it, rewritten in place as the SDF that we read.

What changed since, and what becomes of it:

* ``<pose frame>``, which Gazebo classic passed over, goes; ``<use_parent_model_frame>`` becomes
  ``expressed_in="__model__"`` of the axis;
* ``<kinematic>`` links do not move by forces: they are held by the world;
* what we do not model (springs in joints, links without gravity, parts of mesh files) is left out
  with a warning, elements that we do not know with a note;
* links and joints that are given twice are left out where both say the same, and joints of links
  that do not exist; names that links and joints share are made different;
* meshes are looked for where they may be; shapes whose file is missing are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cards_core.formats.imports.findings import FilePlace, FindingList, NameTable
from cards_core.formats.imports.meshes import FoundMeshes
from cards_core.formats.imports.next_command import wrong_root
from cards_core.formats.imports.sdf_tree import add, check_links
from cards_core.formats.sdf.schema import CONTENT, VERSIONS, Content
from cards_core.formats.sdf.values import boolean, flag, scalar, text_of
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.robot.elements import WORLD

OLD = ("1.5", "1.6", "1.7", "1.8")
"""Versions that are rewritten; later ones pass."""

_NUMBER = Content(text=True)
_OTHER_SHAPES = ("cone", "heightmap", "image", "polyline")


def check_version(root: XmlElement) -> None:
    """Check that a document is SDF of a version that can be imported.

    Raises:
        DescriptionError: It is not.
    """
    if root.tag != "sdf":
        muscles = root.tag == "cardsflow"
        seems = "the muscles alone: name the SDF beside it" if muscles else ""
        raise wrong_root(root, "an SDF document", '<sdf version="1.6"> as root', seems=seems)
    version = root.get("version", "").strip()
    if version not in (*OLD, *VERSIONS):
        shown = f"SDF version '{shorten(version)}'" if version else "no version"
        raise root.error(shown, f'version="..." one of {", ".join((*OLD, *VERSIONS))}')


@dataclass
class Upgrade:
    """Rewrites one document.

    Attributes:
        findings: Takes notes and warnings.
        found: Finds the files of meshes.
        kinematic: Names of links that do not move by forces.
        plugins: ``<plugin>`` elements that are not ours, taken out.
        meshes: Link to path and scale of its first mesh.
        renamed: Old and new names of joints that had the name of a link.
    """

    findings: FindingList
    found: FoundMeshes
    kinematic: list[str] = field(default_factory=list)
    plugins: list[XmlElement] = field(default_factory=list)
    meshes: dict[str, tuple[str, str]] = field(default_factory=dict)
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def run(self, root: XmlElement) -> None:
        """Rewrite the document.

        Raises:
            DescriptionError: A flag or number that decides is none.
        """
        check_version(root)
        root.set("version", VERSIONS[-2])
        for model in root.iter("model"):
            assert isinstance(model, XmlElement)
            check_links(model)
            self._drop_copies(model)
            self._drop_loose_joints(model)
            self._separate_names(model)
        self._visit(root)

    # Things given twice ----------------------------------------------------------------------

    def _drop_copies(self, model: XmlElement) -> None:
        first: dict[tuple[str, str], XmlElement] = {}
        kept = []
        for element in model:
            key = (element.tag, element.get("name", "").strip())
            other = first.setdefault(key, element)
            twice = element.tag in ("link", "joint") and other is not element
            if twice and _content(element) == _content(other):
                self._warn("given-twice", element, f"the same as in line {other.line}: left out")
                continue
            kept.append(element)
        model[:] = kept

    def _drop_loose_joints(self, model: XmlElement) -> None:
        """Leave out joints of links that do not exist."""
        known = {item.get("name", "").strip() for item in model if item.tag != "joint"} | {WORLD}
        kept = []
        for joint in model:
            ends = [joint.child(role) for role in ("parent", "child")]
            names = [text_of(end) for end in ends if end is not None]
            lost = [name for name in names if name not in known and "::" not in name]
            if joint.tag == "joint" and lost and all(names):
                self._warn(
                    "joint-left-out",
                    joint,
                    f"link '{shorten(lost[0])}' does not exist: the joint is left out",
                )
                continue
            kept.append(joint)
        model[:] = kept

    def _separate_names(self, model: XmlElement) -> None:
        taken = {item.get("name", "").strip() for item in model.children("link")} | {WORLD}
        table = NameTable(taken)
        for joint in model.children("joint"):
            name = joint.get("name", "").strip()
            if name in taken:
                joint.set("name", table.claim(f"{name}_joint"))
                self.renamed.append((name, joint.get("name", "")))
        for link in model.children("link"):
            shapes = {"visual": NameTable(), "collision": NameTable()}
            for item in link.children(*shapes):
                item.set("name", shapes[item.tag].claim(item.get("name", ""), item.tag))

    # Elements --------------------------------------------------------------------------------

    def _visit(self, element: XmlElement) -> None:
        key = element.tag
        if key == "friction" and element.parent is not None and element.parent.tag == "surface":
            key = "surface/friction"
        content = CONTENT.get(key, _NUMBER)
        self._attributes(element, content)
        known = content.once | content.many | content.refused.keys()
        kept = []
        for child in element:
            if child.tag in _RULES:
                if not _RULES[child.tag](self, child):
                    continue
            elif child.tag in content.ignored or ":" in child.tag:
                continue
            elif child.tag not in known:
                self._note(
                    "element-ignored",
                    element,
                    f"<{shorten(child.tag)}> has no meaning here",
                    line=child.line,
                )
                continue
            if child.tag != "plugin":
                self._visit(child)
            kept.append(child)
        element[:] = kept

    def _attributes(self, element: XmlElement, content: Content) -> None:
        for name in list(element.attrib):
            if name in content.attributes or ":" in name or name == "xmlns":
                continue
            value = element.attrib.pop(name)
            if element.tag != "pose" or name != "frame":
                self._note("attribute-ignored", element, f"attribute '{shorten(name)}' is unknown")
            elif value.strip():
                self._warn(
                    "pose-frame-ignored",
                    element,
                    f"frame '{shorten(value)}' passed over, as by Gazebo classic",
                )

    # Rules: whether the element stays ----------------------------------------------------------

    def _plugin(self, plugin: XmlElement) -> bool:
        module = plugin.child("module_name")
        if module is not None and text_of(module).startswith("cards_"):
            return True
        self.plugins.append(plugin)
        return False

    def _kinematic(self, element: XmlElement) -> bool:
        link = element.parent
        assert link is not None
        if link.tag == "link" and flag(link, "kinematic"):
            self.kinematic.append(link.get("name", "").strip())
        return False

    def _gravity(self, element: XmlElement) -> bool:
        link = element.parent
        assert link is not None
        if link.tag != "link":
            return True
        if not flag(link, "gravity", True):
            self._warn("gravity-acts", link, "<gravity>false</gravity>: it has weight here")
        return False

    def _model_frame(self, element: XmlElement) -> bool:
        axis = element.parent
        assert axis is not None
        if boolean(text_of(element), element):
            xyz = axis.child("xyz")
            if xyz is None:
                xyz = add(axis, "xyz", axis, "0 0 1")
            xyz.set("expressed_in", "__model__")
        return False

    def _spring(self, element: XmlElement) -> bool:
        dynamics = element.parent
        assert dynamics is not None
        if scalar(dynamics, "spring_stiffness", 0.0) != 0.0:
            self._warn(
                "joint-spring-left-out",
                dynamics,
                f"spring of {text_of(element)} Nm/rad in the joint is left out",
            )
        return False

    def _submesh(self, element: XmlElement) -> bool:
        self._warn("submesh-ignored", element, "the whole mesh is used")
        return False

    def _shape(self, element: XmlElement) -> bool:
        """Leave out visuals and collisions whose shape or mesh file we do not have."""
        geometry = element.child("geometry")
        if geometry is None:
            return True
        for other in geometry.children(*_OTHER_SHAPES):
            self._warn("shape-left-out", element, f"a <{other.tag}> is left out")
            return False
        mesh = geometry.child("mesh")
        uri = None if mesh is None else mesh.child("uri")
        if mesh is None or uri is None:
            return True
        found = self.found.uri(uri, text_of(uri))
        if found is None:
            self._warn(
                "mesh-missing",
                element,
                f"'{shorten(text_of(uri))}' is no mesh file that was found: left out",
                line=uri.line,
            )
            return False
        uri.text = found
        link = element.parent
        if link is not None and link.tag == "link":
            scale = mesh.child("scale")
            value = "1 1 1" if scale is None else text_of(scale)
            # collisions stand before visuals in these files, and are the simpler shapes
            self.meshes.setdefault(link.get("name", "").strip(), (found, value))
        return True

    # Findings --------------------------------------------------------------------------------

    def _warn(
        self, code: str, element: XmlElement, message: str, *, line: int | None = None
    ) -> None:
        self.findings.warn(
            code, element.label, message, at=FilePlace(element.source, line or element.line)
        )

    def _note(
        self, code: str, element: XmlElement, message: str, *, line: int | None = None
    ) -> None:
        self.findings.note(
            code, element.label, message, at=FilePlace(element.source, line or element.line)
        )


_RULES: Mapping[str, Callable[[Upgrade, XmlElement], bool]] = {
    "plugin": Upgrade._plugin,
    "kinematic": Upgrade._kinematic,
    "gravity": Upgrade._gravity,
    "use_parent_model_frame": Upgrade._model_frame,
    "spring_stiffness": Upgrade._spring,
    "submesh": Upgrade._submesh,
    "visual": Upgrade._shape,
    "collision": Upgrade._shape,
}
"""Element to what is done with it before its content is looked at."""


def _content(element: XmlElement) -> tuple[object, ...]:
    """Return what an element says, for comparison."""
    return (
        element.tag,
        tuple(sorted(element.attrib.items())),
        (element.text or "").strip(),
        tuple(_content(child) for child in element),
    )
