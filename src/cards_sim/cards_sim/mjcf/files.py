"""Read an MJCF file with MuJoCo, and say in which file and line it is wrong.

MuJoCo resolves classes, includes, angles, inertias of geoms and orientations. Its compiled model
is what is imported, so every number is the one that MuJoCo simulates. Before it, the text is read
here: what is no XML, or asks for more memory than a robot needs, is refused with its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.named_files import Confinement, import_confinement
from cards_sim.mujoco_warnings import quiet_mujoco

MAX_FILES = 200
"""Most included files."""

LIMITS = {
    "replicate": {"count": 1000.0},
    "composite": {"count": 200.0},
    "flexcomp": {"count": 200.0},
    "hfield": {"nrow": 4000.0, "ncol": 4000.0},
    "texture": {"width": 16384.0, "height": 98304.0},
    "size": {"nkey": 1e4, "nuserdata": 1e6}
    | {
        f"nuser_{x}": 1e4
        for x in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
    },
}
"""Largest numbers of attributes that ask for memory, by element."""

MAX_REPLICAS = 1000.0
"""Most copies of a body by ``<replicate>``, nested ones multiplied."""

_TEXTS = frozenset({"name", "class", "childclass", "model", "file", "prefix"})
_FINITE = frozenset(
    {"gravity", "mass", "density", "pos", "axis", "size", "fromto", "quat", "euler", "axisangle"}
    | {"xyaxes", "zaxis", "diaginertia", "fullinertia", "damping", "frictionloss", "gear"}
)

_LINE = re.compile(r"\bline (\d+)")
_ELEMENT = re.compile(r"Element '([^']*)'")
_NAME = re.compile(r"Element name '([^']*)'")
_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True, eq=False)
class MjcfSource:
    """The files of a model, as text.

    Attributes:
        path: The main file.
        roots: Its root element and those of all included files.
    """

    path: Path
    roots: tuple[XmlElement, ...]

    def elements(self) -> Iterator[XmlElement]:
        """Yield all elements of all files."""
        for root in self.roots:
            for element in root.iter():
                assert isinstance(element, XmlElement)
                yield element

    def place(self, tag: str, name: str) -> tuple[str, int | None]:
        """Return file and line of the element with a name; the main file without a line if none.

        Args:
            tag: Tags that it may have, separated by blanks; any if empty.
            name: Its ``name``.
        """
        tags = tag.split()
        for element in self.elements():
            if element.get("name") == name and (not tags or element.tag in tags):
                return element.source, element.line
        return str(self.path), None


@dataclass(frozen=True, eq=False)
class CompiledMjcf:
    """A model as MuJoCo has compiled it.

    Attributes:
        source: Its files.
        spec: The specification, before compilation.
        model: The compiled model; bodies and joints in depth-first order.
        sampled_ranges: MuJoCo did not find the length ranges of its muscles.
    """

    source: MjcfSource
    spec: mujoco.MjSpec
    model: mujoco.MjModel
    sampled_ranges: bool


def read_source(path: Path, attached: frozenset[Path] = frozenset()) -> MjcfSource:
    """Return the text of a model and of what it includes.

    Args:
        path: The main file.
        attached: Models that it is attached to, resolved.

    Raises:
        DescriptionError: A file cannot be read, is no XML or no MJCF, includes itself, names a
            file outside of its package, or asks for more memory than a robot needs.
    """
    main = parse_xml(path)
    if main.tag != "mujoco":
        raise main.error(
            f"the root element is <{shorten(main.tag)}>", "MJCF, whose root is <mujoco>"
        )
    if path.suffix != ".xml":
        ending = f"the ending '{shorten(path.suffix)}'" if path.suffix else "no ending"
        raise DescriptionError(
            f"{ending}: MuJoCo reads files that end on .xml",
            source=str(path),
            expected=f"the same file as {shorten(path.stem)}.xml in this folder",
        )
    allowed = import_confinement(path.resolve().parent)
    roots = [main]
    done = {path.resolve()}
    waiting = [main]
    while waiting:
        for element in waiting.pop().iter("include"):
            assert isinstance(element, XmlElement)
            name = element.get("file")
            if not name:
                raise element.error("has no 'file'", "the name of a file")
            file = path.parent / name
            _check_place(element, name, [file], allowed)
            try:
                known = file.resolve() in done
            except (OSError, ValueError, RuntimeError) as error:
                raise element.error(f"'{shorten(name)}' is no path: {error}") from None
            if known:
                raise element.error(f"'{shorten(name)}' is included twice", "each file once")
            if len(roots) > MAX_FILES:
                raise element.error(f"more than {MAX_FILES} files", "fewer")
            try:
                included = parse_xml(file)
            except DescriptionError as error:
                if error.line is None:  # it cannot be read: the mistake is here
                    raise element.error(f"'{shorten(name)}': {error.problem}") from None
                raise
            done.add(file.resolve())
            roots.append(included)
            waiting.append(included)
    source = MjcfSource(path, tuple(roots))
    _check_files(source, allowed, attached | done)
    names = {element.get(key, "") for element in source.elements() for key in ("name", "class")}
    for element in source.elements():
        _check_numbers(element)
        _check_finite(element, names)
    return source


def _check_files(source: MjcfSource, allowed: Confinement, attached: frozenset[Path]) -> None:
    """Refuse files outside of the model's package, which MuJoCo would read.

    Which ``<compiler>`` counts is MuJoCo's matter: a file has to be right with each of them.
    """
    folder = source.path.parent
    compilers = [element for element in source.elements() if element.tag == "compiler"]
    places = {folder / c.get(key, "") for c in compilers for key in _FOLDERS} | {folder}
    stripped = {c.get("strippath", "false") for c in compilers}
    for element in source.elements():
        for attribute in _FILES.get(element.tag, ()):
            name = element.get(attribute)
            if not name:
                continue
            names = {name}
            if "true" in stripped:
                bare = name.replace("\\", "/").rpartition("/")[2]
                names = {bare} if stripped == {"true"} else {name, bare}
            _check_place(element, name, [p / n for p in places for n in names], allowed)
            if element.tag == "model":
                if (folder / name).resolve() in attached:
                    raise element.error(f"'{shorten(name)}' contains itself", "another file")
                read_source(folder / name, attached)


_FOLDERS = ("meshdir", "texturedir", "assetdir")

_SIDES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")

_FILES = {
    "mesh": ("file",),
    "hfield": ("file",),
    "skin": ("file",),
    "flexcomp": ("file",),
    "model": ("file",),
    "texture": ("file", *_SIDES),
}
"""Attributes that name files, by element."""


def _check_place(
    element: XmlElement, name: str, files: Iterable[Path], allowed: Confinement
) -> None:
    for file in files:
        if "\0" not in name and not allowed.holds(file):
            raise element.error(
                f"'{shorten(name)}' is outside of the model's package", allowed.expected
            )


def _check_finite(element: XmlElement, names: set[str]) -> None:
    """Refuse nan, which MuJoCo takes for an attribute that is not there, and infinite sizes."""
    for attribute, text in element.attrib.items():
        if attribute in _TEXTS or text in names:
            continue
        try:
            values = [float(token) for token in text.split()]
        except ValueError:
            continue  # a word, or MuJoCo will say so
        if any(math.isnan(v) or (math.isinf(v) and attribute in _FINITE) for v in values):
            raise element.error(f"{attribute} '{shorten(text)}' is not finite", "finite numbers")


def _check_numbers(element: XmlElement) -> None:
    for name, most in LIMITS.get(element.tag, {}).items():
        for text in element.get(name, "").split():
            value = _number(text)
            if not abs(value) <= most:
                raise element.error(f"{name} {shorten(text)}", f"at most {most:g}")
    if element.tag == "replicate":
        copies, here = 1.0, element
        while here is not None:
            if here.tag == "replicate":
                copies *= max(1.0, _number((here.get("count", "1").split() or ["1"])[0]))
            above = here.parent
            if above is None:
                break
            here = above
        if not copies <= MAX_REPLICAS:
            raise element.error(f"{copies:g} copies", f"at most {MAX_REPLICAS:g}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0  # MuJoCo will say so


def compile_file(source: MjcfSource) -> CompiledMjcf:
    """Return a model as MuJoCo compiles it.

    Args:
        source: Of `read_source`.

    Raises:
        DescriptionError: MuJoCo refuses the file.
        CardsError: MuJoCo is too old.
    """
    if not hasattr(mujoco.MjModel, "nactuator"):
        raise CardsError(f"MuJoCo {mujoco.__version__} is installed (expected: 4.0 or newer)")
    with quiet_mujoco():
        try:
            spec = mujoco.MjSpec.from_file(str(source.path))
            spec.memory = -1
            try:
                return CompiledMjcf(source, spec, spec.compile(), False)
            except ValueError as error:
                if "engthrange" not in str(error):
                    raise
            # the range over which a muscle moves decides its parameters only; it is sampled then
            spec.compiler.LRopt.mode = 0
            return CompiledMjcf(source, spec, spec.compile(), True)
        except (ValueError, RuntimeError, MemoryError, UnicodeError, mujoco.FatalError) as error:
            raise _explained(source, str(error)) from None


def _explained(source: MjcfSource, text: str) -> DescriptionError:
    """Return MuJoCo's message as an error of ours, with the place that it speaks of."""
    found = _LINE.search(text)
    line = int(found[1]) if found else None
    tag, name = _ELEMENT.search(text), _NAME.search(text)
    problem = " ".join(_LINE.sub("", _NAME.sub("", _ELEMENT.sub("", text))).split())
    problem = re.sub(r"(, id \d+)?[, ]*(column \d+)?[, ]*$", "", problem)
    problem = re.sub(r"^(XML )?Error: ", "", problem) or "refused"
    place = next((e for e in source.elements() if _fits(e, line, tag, name)), None)
    if place is None and not line:  # MuJoCo says 0 of included files
        words = {name[1]} if name and name[1] else set(_QUOTED.findall(text)) - {tag and tag[1]}
        tagged = [e for e in source.elements() if tag is None or e.tag == tag[1]]
        place = next((e for e in tagged if words & set(e.attrib.values())), None)
        if place is None and tag and len(tagged) == 1:
            place = tagged[0]
    if place is None:
        return DescriptionError(
            f"MuJoCo refuses it: {problem}", source=str(source.path), line=line or 1
        )
    return place.error(f"MuJoCo refuses it: {problem}")


def _fits(
    element: XmlElement, line: int | None, tag: re.Match[str] | None, name: re.Match[str] | None
) -> bool:
    """Return whether an element is at a line, with this tag and name as far as they are known."""
    return (
        bool(line)
        and element.line == line
        and (tag is None or element.tag == tag[1])
        and (not (name and name[1]) or element.get("name") == name[1])
    )
