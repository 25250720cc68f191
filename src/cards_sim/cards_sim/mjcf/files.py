"""Read an MJCF file with MuJoCo, and say in which file and line it is wrong.

MuJoCo resolves classes, includes, angles, inertias of geoms and orientations. Its compiled model
is what is imported, so every number is the one that MuJoCo simulates. Before it, the text is read
here: what is no XML, or asks for more memory than a robot needs, is refused with its place.
"""

from __future__ import annotations

import math
import os
import re
import stat
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import mujoco

from cards_core.checks import LARGEST
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.imports.meshes import SUFFIXES
from cards_core.formats.imports.next_command import refuse_cad, wrong_root
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.named_files import Confinement, import_confinement
from cards_sim.mjcf.obsolete import obsolete, without
from cards_sim.mujoco_warnings import quiet_mujoco

MAX_FILES = 200
"""Most files that MuJoCo reads as text: included ones, and attached models each time anew."""

MAX_LEVELS = 20
"""Most models that are attached to each other in a row."""

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
_LIMITS = frozenset({"range", "ctrlrange", "forcerange", "actrange", "actuatorfrcrange"})

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
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
        obsolete: Elements, of attached models too, the attribute of each that MuJoCo dropped
            and does not get to read, and what that does.
        texts: What MuJoCo reads in place of the files that have those, by their names.
    """

    path: Path
    roots: tuple[XmlElement, ...]
    obsolete: tuple[tuple[XmlElement, str, str], ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)

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
        warnings: What MuJoCo said of the file.
    """

    source: MjcfSource
    spec: mujoco.MjSpec
    model: mujoco.MjModel
    sampled_ranges: bool
    warnings: tuple[str, ...] = ()


def read_source(path: Path) -> MjcfSource:
    """Return the text of a model and of what it includes.

    Args:
        path: The main file.

    Raises:
        DescriptionError: A file cannot be read, is no XML or no MJCF, includes itself, names a
            file outside of its package or one that is no regular file, asks for more memory or
            more files than a robot needs, or has an attribute that MuJoCo dropped and that
            changes the robot.
    """
    reading = _Reading()
    source = reading.model(path, frozenset(), 0)
    return replace(source, obsolete=tuple(reading.obsolete.values()), texts=reading.texts())


class _Reading:
    """Reads a model and those that are attached to it, each once.

    Attributes:
        counts: Number of files that MuJoCo reads for a model, by its path.
        files: All of them, by their name as MuJoCo knows texts that are given to it.
        obsolete: Elements with an attribute that MuJoCo dropped, its name, and what leaving it
            out does, by place.
    """

    def __init__(self) -> None:
        self.counts: dict[Path, int] = {}
        self.files: dict[str, set[Path]] = {}
        self.obsolete: dict[tuple[str, int, str], tuple[XmlElement, str, str]] = {}

    def texts(self) -> dict[str, bytes]:
        """Return the texts of the files with obsolete attributes without these, by name."""
        out = {}
        for element, name, _ in self.obsolete.values():
            file = Path(element.source)
            key = file.name.lower()
            if len(self.files[key]) > 1:  # MuJoCo would read one text for both
                raise element.error(
                    f"newer MuJoCo does not have {name}, and two files are called "
                    f"'{shorten(file.name)}'",
                    f"the element without {name}",
                )
            here = [
                item[:2] for item in self.obsolete.values() if item[0].source == element.source
            ]
            if key not in out:
                out[key] = without(file, here)
        return out

    def model(self, path: Path, above: frozenset[Path], level: int) -> MjcfSource:
        """Return the text of a model.

        Args:
            path: Its main file.
            above: Files of the models that it is attached to, resolved.
            level: Number of these models.
        """
        refuse_cad(path, "an MJCF")
        main = _parsed(path)
        if main.tag != "mujoco":
            raise wrong_root(
                main,
                "an MJCF",
                "MJCF, whose root is <mujoco>",
                seems=f"the root element is <{shorten(main.tag)}>",
            )
        if path.suffix != ".xml":
            ending = f"the ending '{shorten(path.suffix)}'" if path.suffix else "no ending"
            raise DescriptionError(
                f"{ending}: MuJoCo reads files that end on .xml",
                source=str(path),
                expected=f"the same file as {shorten(path.stem)}.xml in this folder",
            )
        allowed = import_confinement(path.resolve().parent, _KINDS)
        source, done = _included(path, main, allowed)
        count = len(source.roots)
        for element, file in _named_files(source, allowed):
            if file.resolve() in above | done:
                name = shorten(element.get("file", ""))
                raise element.error(f"'{name}' contains itself", "another file")
            if level >= MAX_LEVELS:
                raise element.error(
                    "a model in a model and so on", f"at most {MAX_LEVELS} in a row"
                )
            if file not in self.counts:
                self.model(file, above | done, level + 1)
            count += self.counts[file]
            if count > MAX_FILES:
                raise element.error(
                    f"more than {MAX_FILES} files, attached models counted each time", "fewer"
                )
        self.counts[path] = count
        names = {e.get(key, "") for e in source.elements() for key in ("name", "class")}
        for root in source.roots:
            file = Path(root.source)
            self.files.setdefault(file.name.lower(), set()).add(file.resolve())
        for element in source.elements():
            _check_numbers(element)
            _check_finite(element, names)
            for name, effect in obsolete(element):
                self.obsolete[element.source, element.begin, name] = element, name, effect
        return source


def _parsed(path: Path) -> XmlElement:
    """Return a file's root; comments may hold ``--``, which MuJoCo does not mind."""
    try:
        return parse_xml(path)
    except DescriptionError as error:
        if not error.problem.startswith("malformed"):
            raise
        blank = _COMMENT.sub(lambda found: re.sub(rb"[^\r\n]", b" ", found[0]), path.read_bytes())
        return parse_xml(blank, name=str(path))


def _included(
    path: Path, main: XmlElement, allowed: Confinement
) -> tuple[MjcfSource, frozenset[Path]]:
    """Return a model with what it includes, and all its files, resolved."""
    roots = [main]
    done = {path.resolve()}
    waiting = [main]
    while waiting:
        for element in waiting.pop().iter("include"):
            assert isinstance(element, XmlElement)
            name = element.get("file")
            if not name:
                raise element.error("has no 'file'", "the name of a file")
            file = _opened(element, path.parent, "", name, allowed)
            if not os.path.lexists(file):  # then from where it is named
                beside = _opened(element, Path(element.source).parent, "", name, allowed)
                file = beside if os.path.lexists(beside) else file
            try:
                known = file.resolve() in done
            except (OSError, ValueError, RuntimeError) as error:
                raise element.error(f"'{shorten(name)}' is no path: {error}") from None
            if known:
                raise element.error(f"'{shorten(name)}' is included twice", "each file once")
            if len(roots) > MAX_FILES:
                raise element.error(f"more than {MAX_FILES} files", "fewer")
            try:
                included = _parsed(file)
            except DescriptionError as error:
                if error.line is None:  # it cannot be read: the mistake is here
                    raise element.error(f"'{shorten(name)}': {error.problem}") from None
                raise
            done.add(file.resolve())
            roots.append(included)
            waiting.append(included)
    return MjcfSource(path, tuple(roots)), frozenset(done)


def _named_files(source: MjcfSource, allowed: Confinement) -> Iterator[tuple[XmlElement, Path]]:
    """Refuse files that MuJoCo must not read; yield the attached models.

    Which ``<compiler>`` counts is MuJoCo's matter: a file has to be right with each of them.
    """
    folder = source.path.parent
    compilers = [element for element in source.elements() if element.tag == "compiler"]
    directories = sorted({c.get(key, "") for c in compilers for key in _FOLDERS} | {""})
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
            for directory in directories:
                for one in sorted(names):
                    _opened(element, folder, directory, one, allowed)
            if element.tag == "model":  # no directory counts for it, and it is not stripped
                yield element, _opened(element, folder, "", name, allowed)


_KINDS = (".xml", ".png", ".skn", *SUFFIXES)
"""Endings of files that a model includes: models, textures and height fields, skins, meshes."""

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


def _opened(
    element: XmlElement, folder: Path, directory: str, name: str, allowed: Confinement
) -> Path:
    """Return the path that MuJoCo opens for a name; an error if it must not.

    MuJoCo takes a backslash for a slash on every system and removes ``x/..`` as text, whether x
    is a link or not. It takes what has ``:/`` in it for absolute and leaves it to the system, for
    which it is relative to the working directory.

    Args:
        element: That names the file.
        folder: Of the model.
        directory: ``meshdir`` and the like; empty if none.
        name: Of the file.
        allowed: Where it may be.
    """
    directory, name = directory.replace("\\", "/"), name.replace("\\", "/")
    shown = shorten(os.path.join(directory, name))
    if ":/" in name or (":/" in directory and not name.startswith("/")):
        raise element.error(
            f"'{shown}' has a drive or a scheme",
            "a path relative to the model's folder, with '/' between its parts",
        )
    path = folder / directory / name
    file = Path(os.path.normpath(path))
    # the path before this too: whoever reads it otherwise follows links first
    held = allowed.holds(file) and allowed.holds(path)
    if "\0" not in name and not (held or allowed.follows(folder, os.path.join(directory, name))):
        raise element.error(f"'{shown}' is outside of the model's package", allowed.expected)
    if _waits(file):
        raise element.error(f"'{shown}' is a pipe or a device", "a regular file")
    return file


def _waits(file: Path) -> bool:
    """Return whether reading a file may not end: that of a pipe or a device."""
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        return False  # it cannot be read at all
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _check_finite(element: XmlElement, names: set[str]) -> None:
    """Refuse nan, which MuJoCo takes for an attribute that is not there, and endless numbers.

    Only limits may have no end.
    """
    for attribute, text in element.attrib.items():
        if attribute in _TEXTS or text in names:
            continue
        try:
            values = [float(token) for token in text.split()]
        except ValueError:
            continue  # a word, or MuJoCo will say so
        limits = attribute in _LIMITS and element.tag != "muscle"
        if any(math.isnan(v) or (math.isinf(v) and not limits) for v in values):
            raise element.error(f"{attribute} '{shorten(text)}' is not finite", "finite numbers")
        if not limits and any(abs(v) >= LARGEST for v in values):
            raise element.error(
                f"{attribute} '{shorten(text)}' is too large", f"a magnitude below {LARGEST:g}"
            )


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
    with quiet_mujoco(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def compiled(sampled: bool) -> CompiledMjcf:
            model = spec.compile()
            said = dict.fromkeys(" ".join(str(item.message).split()) for item in caught)
            return CompiledMjcf(source, spec, model, sampled, tuple(said))

        try:
            spec = mujoco.MjSpec.from_file(str(source.path), include=source.texts)
            spec.memory = -1
            try:
                return compiled(False)
            except ValueError as error:
                if "engthrange" not in str(error):
                    raise
            # the range over which a muscle moves decides its parameters only; it is sampled then
            spec.compiler.LRopt.mode = 0
            return compiled(True)
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
