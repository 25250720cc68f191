"""What reads files and messages of others, each as a function of bytes that a fuzzer calls.

A target gives the bytes to a reader. A robot or a `CardsError` is as it should be; any other
exception, a hang or a crash is a finding.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from cards_core.errors import CardsError

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
CORPUS = HERE / "corpus"

LONGEST_MESSAGE = 3000
"""Longest acceptable message of an error, characters; files must not flood a terminal."""


@dataclass(frozen=True)
class Parser:
    """One reader.

    Attributes:
        read: Reads; raises `CardsError` about what is wrong.
        corpus: Folder of its seeds, below ``corpus``.
        words: What its documents are made of, for the fuzzer's dictionary.
        longest: Longest input, bytes.
        grammar: "xml", "yaml", or "" where copies are not damaged within a grammar.
    """

    read: Callable[[bytes], object]
    corpus: str
    words: tuple[str, ...] = ()
    longest: int = 4096
    grammar: str = ""

    def seeds(self) -> list[Path]:
        """Return the files of the corpus."""
        return sorted(path for path in (CORPUS / self.corpus).iterdir() if path.is_file())

    def __call__(self, data: bytes) -> bool:
        """Read; return whether it was understood."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                self.read(data)
            except CardsError as refused:
                message = str(refused)
            else:
                return True
        assert 0 < len(message) < LONGEST_MESSAGE, message
        return False


@cache
def _folder() -> Path:
    """Return a folder in memory, for readers that take a path."""
    memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(
        prefix="cards-fuzz-", dir=memory if memory.is_dir() else None
    )
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _beside(folder: str, others: dict[str, str]) -> Path:
    """Return a folder with files that stay as they are."""
    path = _folder() / folder
    if not path.is_dir():
        path.mkdir()
        for name, text in others.items():
            (path / name).write_text(text, encoding="utf-8")
    return path


def _seed(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


@cache
def _robot(name: str = "planar_2r") -> object:
    from cards_core.formats import load

    return load(name)


# Text ----------------------------------------------------------------------------------------


def xml(data: bytes) -> object:
    """Read XML as all readers of XML begin."""
    from cards_core.formats.xml_lines import parse_xml

    return parse_xml(data, name="fuzz.xml")


def yaml(data: bytes) -> object:
    """Read YAML as all readers of YAML begin."""
    from cards_core.yaml_fields import read_yaml

    return read_yaml(_file("fuzz.yaml", data))


# Robots ------------------------------------------------------------------------------------------


def sdf(data: bytes) -> object:
    from cards_core.formats import read_sdf

    return read_sdf(data, name="fuzz.sdf").tree


def world(data: bytes) -> object:
    from cards_core.formats.sdf.world import read_world

    return read_world(data, name="fuzz.sdf")


def urdf(data: bytes) -> object:
    from cards_core.formats.imports import masses
    from cards_core.formats.urdf.importer import import_urdf

    with _quick_masses(masses):
        model = import_urdf(data, motors="transmissions", folder=_folder())
    return model.to_json(), model.to_markdown()


def muscles_yaml(data: bytes) -> object:
    from cards_core.formats.imports import masses
    from cards_core.formats.urdf.importer import import_urdf

    with _quick_masses(masses):
        return import_urdf(_seed("urdf/arm.urdf"), muscles=_file("muscles.yaml", data))


@contextmanager
def _quick_masses(masses: Any) -> Iterator[None]:
    """Look at one pose for the largest change of M: a matter of precision, not of damage.

    In the block only: tests that follow in the same process need all poses.
    """
    plain = masses.mass_matrix_change

    def quick(before: object, after: object, **_: object) -> object:
        return plain(before, after, samples=1, steps=1)

    with patch.object(masses, "mass_matrix_change", quick):
        yield


def cardsflow_sdf(data: bytes) -> object:
    return _cardsflow("cardsflow-sdf", "model.sdf", data)


def cardsflow_xml(data: bytes) -> object:
    return _cardsflow("cardsflow-xml", "cardsflow.xml", data)


def _cardsflow(folder: str, name: str, data: bytes) -> object:
    from cards_core.formats.cardsflow.importer import import_cardsflow
    from cards_core.formats.imports import masses

    other = {"model.sdf": "cardsflow_sdf/model.sdf", "cardsflow.xml": "cardsflow_xml/muscles.xml"}
    place = _beside(folder, {key: _seed(path) for key, path in other.items()})
    (place / name).write_bytes(data)
    with _quick_masses(masses):
        return import_cardsflow(place)


def opensim(data: bytes) -> object:
    from cards_core.formats.opensim import wraps
    from cards_core.formats.opensim.importer import import_osim

    # where paths are looked at, not whether they are
    with patch.multiple(wraps, RANDOM=5, SWEEP=3):
        return import_osim(_file("fuzz.osim", data))


def mjcf(data: bytes) -> object:
    from cards_sim.mjcf.importer import import_mjcf

    return import_mjcf(_file("fuzz.xml", data))


def caspr(part: str, data: bytes) -> object:
    from cards_core.formats.caspr import checks, import_caspr

    parts = ("bodies", "cables", "trajectories", "operational_spaces")
    place = _beside(
        f"caspr-{part}", {f"robot_{p}.xml": _seed(f"caspr_{p}/robot.xml") for p in parts}
    )
    (place / f"robot_{part}.xml").write_bytes(data)
    with _quick_masses(checks):
        return import_caspr(place, feasibility=False)


def structure(data: bytes) -> object:
    from cards_core.tensegrity.build import build

    return build(_file("structure.yaml", data))


def rods_yaml(data: bytes) -> object:
    from cards_core.rods.robots.reader import read_rod_robot

    place = _beside("rods", {"model.sdf": _rod_model()})
    (place / "rods.yaml").write_bytes(data)
    return read_rod_robot(place / "model.sdf")


@cache
def _rod_model() -> str:
    return (CHECKOUT / "models" / "planar_3rfr" / "model.sdf").read_text(encoding="utf-8")


def mesh(ending: str, data: bytes) -> object:
    from cards_core.paths.wrapping.mesh import mesh_vertices

    try:
        return mesh_vertices(data, f"mesh.{ending}")
    except ValueError as error:  # what it documents; callers add the place
        raise CardsError(str(error) or "damaged") from None


def heights(ending: str, data: bytes) -> object:
    from cards_core.robot.height_field import read_heights

    return read_heights(_file(f"heights.{ending}", data))


def terrain(data: bytes) -> object:
    from cards_core.robot.terrain import read_terrain

    text = data.decode("utf-8", "replace")
    return read_terrain(text)


# Parameters and motions --------------------------------------------------------------------------


def pattern_yaml(data: bytes) -> object:
    from cards_core.control.cpg.parameters import read_parameters

    return read_parameters(_file("pattern.yaml", data))


def ntrt_json(data: bytes) -> object:
    from cards_core.control.cpg.ntrt import read_json

    place = _beside("ntrt", {"goal.nnw": ",".join(["0.5"] * 22)})
    (place / "learned.json").write_bytes(data)
    return read_json(place / "learned.json")


def ntrt_nnw(data: bytes) -> object:
    from cards_core.control.cpg.ntrt import read_folder

    place = _beside("nnw", {f"x_edge-{k}.nnw": "0.25,0.5" for k in range(2)})
    (place / "x_node-0.nnw").write_bytes(data)
    return read_folder(place, "x")


def trajectories(data: bytes) -> object:
    from cards_core.trajectories.library import load_references

    references = load_references(_file("trajectories.yaml", data), size=2)
    return [reference(0.0) for reference in references.values()]


def traj(data: bytes) -> object:
    from cards_core.trajectories.sampled import read_traj

    return read_traj(_file("fuzz.traj", data))


def layout(data: bytes) -> object:
    from cards_hardware.boards import layout as module
    from cards_hardware.boards.layout import read_layout

    file, robot = _file("planar_2r.boards.yaml", data), _robot()
    # poses of the windows of lengths are precision, not reading; tests that follow need all
    with patch.object(module, "_SAMPLES", 4):
        return read_layout(file, robot, port="/dev/null", dynamics=_dynamics())


@cache
def _dynamics() -> object:
    from cards_core.dynamics import make_dynamics

    return make_dynamics(_robot(), "numeric")


def parameter_file(data: bytes) -> object:
    from cards_core.parameters.parameter_file import load_parameters

    return load_parameters(_file("parameters.yaml", data), "simulator")


def node_list(data: bytes) -> object:
    from cards_bringup.nodes.node_list import read_file

    place = _beside("nodes", {"planar_2r.yaml": "{}\n"})
    path = place / "planar_2r.nodes.yaml"
    path.write_bytes(data)
    return read_file(path)


def experiment(data: bytes) -> object:
    from cards_learning.experiment import read_experiment

    return read_experiment(_file("experiment.yaml", data))


def fit_yaml(data: bytes) -> object:
    from cards_core.analysis.muscle_fit.reading import read_specification

    return read_specification(_file("fit.yaml", data), _robot())


# Messages ----------------------------------------------------------------------------------------


def websocket(data: bytes) -> object:
    """Give a message to the page's guard, as of an operator and as of a spectator.

    What is let through goes on as viser does it, whose reading must not fail then: that would end
    the connection.
    """
    from viser import _messages as messages

    from cards_viz.pages.access import Role
    from cards_viz.pages.guard import NOBODY_SENDS, SPECTATORS_SEND, GuardedConnection

    passed = {}
    for role in Role:
        connection = SimpleNamespace(role=role, refusals=None)
        connection._dropped = lambda what: False
        passed[role] = GuardedConnection._may_send(connection, data)
    assert passed[Role.OPERATOR] or not passed[Role.SPECTATOR]
    if not passed[Role.OPERATOR]:
        raise CardsError("dropped")
    message = messages.Message.deserialize(data)
    assert not isinstance(message, NOBODY_SENDS)
    assert isinstance(message, SPECTATORS_SEND) or not passed[Role.SPECTATOR]
    return message


def request(data: bytes) -> object:
    """Give path, Host and Origin of a request to the page's access check."""
    from cards_viz.pages.access import Access, RefusedError

    path, host, origin, *_ = [*data.decode("latin-1").split("\n"), "", "", ""]
    try:
        return Access("127.0.0.1", "0123456789abcdef").role(
            path, host, origin or None, socket=True
        )
    except RefusedError as error:
        raise CardsError(str(error)) from None


def boards(data: bytes) -> object:
    """Give bytes of a serial line to the bridge's decoder, and a message to its reader.

    The message is that whose type is the first byte, with the rest as payload: few damaged frames
    pass the checksum.
    """
    from cards_hardware.protocol.codec import unpack
    from cards_hardware.protocol.frames import Frame, FrameDecoder

    decoder = FrameDecoder()
    frames = decoder.feed(data)
    assert decoder.waiting <= len(data)
    if data:
        frames.append(Frame(2, 0, 1, data[0], 0, 0, data[1:]))
    return [unpack(frame) for frame in frames]


# All ---------------------------------------------------------------------------------------------

_XML = ("<", "/>", "</", '="', "<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&#1;", "<!ENTITY ")
_NUMBERS = ("nan", "inf", "-inf", "1e308", "1e-320", "-1", "0", "1_0", "0x10", "9" * 40)
_YAML = (": ", "- ", "{", "}", "[", "]", "&a ", "*a", "!!binary ", "!!python/object:os.x", "|\n",
         ">\n", "? ", "---\n", "<<: ", "~", "true", ".nan", ".inf", "\t")  # fmt: skip
_MESSAGES = ("type", "ViewerCameraMessage", "wxyz", "GuiUpdateMessage", "updates",
             "ShareUrlRequest", "LocalStorageGetItemResponseMessage", "request_uuid")  # fmt: skip

_xml = partial(Parser, words=(*_XML, *_NUMBERS), grammar="xml")
_yaml = partial(Parser, words=(*_YAML, *_NUMBERS), grammar="yaml")

PARSERS: dict[str, Parser] = {
    "xml": _xml(xml, "sdf"),
    "yaml": _yaml(yaml, "yaml", longest=512),
    "sdf": _xml(sdf, "sdf"),
    "world": _xml(world, "world"),
    "urdf": _xml(urdf, "urdf"),
    "muscles_yaml": _yaml(muscles_yaml, "muscles_yaml"),
    "cardsflow_sdf": _xml(cardsflow_sdf, "cardsflow_sdf"),
    "cardsflow_xml": _xml(cardsflow_xml, "cardsflow_xml"),
    "opensim": _xml(opensim, "opensim", longest=8192),
    "mjcf": _xml(mjcf, "mjcf"),
    **{
        f"caspr_{part}": _xml(partial(caspr, part), f"caspr_{part}")
        for part in ("bodies", "cables", "trajectories", "operational_spaces")
    },
    "structure": _yaml(structure, "structure"),
    "rods_yaml": _yaml(rods_yaml, "rods_yaml"),
    **{f"mesh_{e}": Parser(partial(mesh, e), f"mesh_{e}", _NUMBERS) for e in ("stl", "obj")},
    **{f"heights_{e}": Parser(partial(heights, e), f"heights_{e}", _NUMBERS)
       for e in ("csv", "npz", "png")},
    "terrain": Parser(terrain, "terrain", _NUMBERS, 512),
    "pattern_yaml": _yaml(pattern_yaml, "pattern_yaml"),
    "ntrt_json": Parser(ntrt_json, "ntrt_json", ("NaN", "Infinity", *_NUMBERS)),
    "ntrt_nnw": Parser(ntrt_nnw, "ntrt_nnw", _NUMBERS, 512),
    "trajectories": _yaml(trajectories, "trajectories"),
    "traj": Parser(traj, "traj", _NUMBERS),
    "layout": _yaml(layout, "layout"),
    "parameter_file": _yaml(parameter_file, "parameter_file"),
    "node_list": _yaml(node_list, "node_list"),
    "experiment": _yaml(experiment, "experiment"),
    "fit_yaml": _yaml(fit_yaml, "fit_yaml"),
    "websocket": Parser(websocket, "websocket", _MESSAGES, 1024),
    "request": Parser(request, "request", ("?token=", "http://", "0123456789abcdef"), 512),
    "boards": Parser(boards, "boards", (), 1024),
}  # fmt: skip
"""All readers by name."""
