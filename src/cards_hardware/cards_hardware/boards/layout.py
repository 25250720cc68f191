"""Which board, on which port, has which muscles and joints; read from ``<robot>.boards.yaml``.

Format::

    robot: roboy_arm                    # as the file's name
    boards:
      - name: arm                       # for messages and diagnostics
        node: 1                         # address, 1..126; every board has its own
        port: "{port}"                  # or a path such as /dev/serial/by-id/usb-...
        baudrate: "{baudrate}"          # or a number; 1000000 without it
        namespace: left_arm             # of the bridge that owns the board; optional
        muscles: [motor0, motor1]       # in the order of the board's channels
        joints: [shoulder, elbow]       # in the order of its joint sensors; may be left out
        limits: {tension_max: 400.0}    # of all its muscles, see `cards_hardware.boards.limits`
        muscle_limits: {motor0: {tension_max: 300.0}}
        stiffness: 20000.0              # [N/m] K, and
        bias: 10.0                      # [N], of length commands T = bias + max(0, K (l - l_cmd))

``{port}`` stands for the launch argument; where that names several ports, separated by commas,
``{port_1}`` is the first. Every muscle that takes commands must be on a board. Either all
coordinates of the robot have a sensor, or none: then they are estimated from muscle lengths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_core.yaml_fields import Field, read_yaml
from cards_hardware.boards.limits import (
    NAMES,
    MuscleLimits,
    check_limits,
    default_limits,
    length_windows,
    limited_muscles,
)
from cards_hardware.protocol.schema import MAX_JOINTS, MAX_MUSCLES

SUFFIX = ".boards.yaml"
BAUDRATE = 1_000_000
"""Without another one, [baud]; boards on USB ignore it."""

STIFFNESS = 20_000.0
"""Stiffness of length commands, [N/m]."""

_MAX_NODE = 126
_KEYS = (
    "name",
    "node",
    "port",
    "baudrate",
    "namespace",
    "muscles",
    "joints",
    "limits",
    "muscle_limits",
    "stiffness",
    "bias",
)
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, eq=False)
class BoardLayout:
    """One board.

    Attributes:
        name: For messages.
        node: Address, 1..126.
        port: Path of the serial device.
        baudrate: [baud]
        muscles, joints: Names, in the order of the board's channels.
        limits: Limits of every muscle, in that order.
        stiffness: Stiffness of length commands, [N/m].
        bias: Bias tension of length commands, [N].
        muscle_rows: Where its muscles are among those of the robot.
        position_rows, velocity_rows: Where its joints are in q and in qd.
        source: File that says so.
    """

    name: str
    node: int = 1
    port: str = ""
    baudrate: int = BAUDRATE
    muscles: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    limits: tuple[MuscleLimits, ...] = ()
    stiffness: float = STIFFNESS
    bias: float = 10.0
    muscle_rows: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    position_rows: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    velocity_rows: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    source: str = ""


@dataclass(frozen=True, eq=False)
class Layout:
    """All boards of a robot.

    Attributes:
        boards: In the order of the file.
        source: The file.
        has_joints: Whether the joints have sensors.
    """

    boards: tuple[BoardLayout, ...]
    source: str
    has_joints: bool

    def limited(self, robot: Robot) -> Robot:
        """Return the robot with tension limits that neither model nor boards object to."""
        limits = {
            name: limit
            for board in self.boards
            for name, limit in zip(board.muscles, board.limits, strict=True)
        }
        return replace(robot, muscles=limited_muscles(robot, limits))


def layout_folders() -> list[Path]:
    """Return the existing folders with layouts, in the order of search.

    ``config`` of this repository if the code runs from a checkout, then
    ``share/cards_bringup/config`` of every prefix in ``AMENT_PREFIX_PATH``.
    """
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    folders = [
        # src/cards_hardware/cards_hardware/boards/layout.py -> the checkout
        Path(__file__).resolve().parents[4] / "config",
        *(Path(p, "share", "cards_bringup", "config") for p in prefixes if p),
    ]
    return [folder for folder in folders if folder.is_dir()]


def find_layout(name_or_path: str | Path) -> Path:
    """Return a layout file.

    Args:
        name_or_path: A file, or the name of a robot with one in `layout_folders`.

    Raises:
        UnknownNameError: There is no such file; the message lists those there are.
    """
    if Path(name_or_path).is_file():
        return Path(name_or_path)
    folders = layout_folders()
    name = str(name_or_path).removesuffix(SUFFIX)
    for folder in folders:
        if Path(name).name == name and (folder / f"{name}{SUFFIX}").is_file():
            return folder / f"{name}{SUFFIX}"
    known = {file.name.removesuffix(SUFFIX) for f in folders for file in f.glob(f"*{SUFFIX}")}
    raise UnknownNameError("board layout", str(name_or_path), sorted(known))


def read_layout(
    name_or_path: str | Path,
    robot: Robot,
    *,
    port: str = "",
    baudrate: int | None = None,
    namespace: str = "",
    dynamics: Dynamics | None = None,
) -> Layout:
    """Read a layout.

    Args:
        name_or_path: See `find_layout`.
        robot: Whose muscles and joints the boards have.
        port: What stands for ``{port}``; several are separated by commas.
        baudrate: What stands for ``{baudrate}``.
        namespace: Only the boards of this namespace; the file may have others.
        dynamics: Dynamics of the robot, for the windows of lengths; compiled if needed.

    Raises:
        UnknownNameError: There is no such file.
        DescriptionError: The file is wrong; the message names file, line and key. Or joints of the
            robot have motors of their own, which nothing here would drive.
    """
    _refuse_motors(robot)
    file = find_layout(name_or_path)
    document = read_yaml(file)
    top = Field(document, (), document.data)
    top.mapping(("robot", "boards"))
    if f"{top['robot'].text()}{SUFFIX}" != file.name:
        name = file.name.removesuffix(SUFFIX)
        raise top["robot"].error(f"is '{top['robot'].text()}'", f"'{name}', as the file")
    wanted = namespace.strip("/")
    entries = top["boards"].items()
    _check_unique(entries, "node")
    own = [item for item in entries if _namespace(item) == wanted]
    if not own:
        known = ", ".join(sorted({_namespace(item) or "none" for item in entries}))
        raise top["boards"].error(f"no board has the namespace '{wanted}'", f"one of {known}")
    _check_unique(own, "name")
    reader = _Reader(robot, _ports(port), baudrate, dynamics)
    boards = tuple(reader.board(item) for item in own)
    reader.check_complete(top["boards"], boards)
    used = [board.port for board in boards]
    for item, board in zip(own, boards, strict=True):
        if used.count(board.port) > 1:
            raise item["port"].error(
                f"is '{board.port}', which another board has too", "a port for every board"
            )
    return Layout(boards, str(file), any(board.joints for board in boards))


def _refuse_motors(robot: Robot) -> None:
    """Refuse a robot that would stand on the boards with joints that nobody holds."""
    driven = [joint.name for joint in robot.joints if joint.motor]
    if driven:
        raise DescriptionError(
            f"joint{'s' if len(driven) > 1 else ''} {', '.join(driven)} with a <motor>, which "
            "muscle boards do not drive",
            source=robot.source,
            element=f"robot '{robot.name}'",
            expected="a robot whose joints are moved by its muscles alone; hybrid robots run in "
            "the simulators",
        )


def _ports(argument: str) -> dict[str, str]:
    ports = [item.strip() for item in argument.split(",") if item.strip()]
    values = {f"port_{i}": item for i, item in enumerate(ports, start=1)}
    if len(ports) == 1:
        values["port"] = ports[0]
    return values


def _namespace(item: Field) -> str:
    item.mapping(_KEYS)
    return item["namespace"].text().strip("/") if item.has("namespace") else ""


def _check_unique(items: Sequence[Field], key: str) -> None:
    seen: set[object] = set()
    for item in items:
        value = item[key].value
        if isinstance(value, str | float) and value in seen:
            shown = f"'{value}'" if isinstance(value, str) else f"{value:g}"
            raise item[key].error(f"{shown} appears twice", f"a {key} of its own for every board")
        if isinstance(value, str | float):
            seen.add(value)


class _Reader:
    """Makes boards of one robot."""

    def __init__(
        self,
        robot: Robot,
        ports: Mapping[str, str],
        baudrate: int | None,
        dynamics: Dynamics | None,
    ) -> None:
        self._robot = robot
        self._tree = dynamics.tree if dynamics else robot.tree
        self._ports = ports
        self._baudrate = baudrate
        self._dynamics = dynamics
        self._windows: Array | None = None
        self._muscles = {muscle.name: i for i, muscle in enumerate(robot.muscles)}

    def board(self, item: Field) -> BoardLayout:
        item.mapping(_KEYS)
        node = item["node"].whole(at_least=1)
        if node > _MAX_NODE:
            raise item["node"].error(f"is {node}", f"1 .. {_MAX_NODE}")
        tree = self._tree
        muscles = self._names(item, "muscles", list(self._muscles), MAX_MUSCLES)
        shared = [name for name in tree.velocity_names if name in tree.position_names]
        joints = self._names(item, "joints", shared, MAX_JOINTS) if item.has("joints") else ()
        return BoardLayout(
            name=item["name"].name(),
            node=node,
            port=self._port(item["port"]),
            baudrate=self._rate(item),
            muscles=muscles,
            joints=joints,
            limits=self._limits(item, muscles),
            stiffness=item["stiffness"].number(above=0.0) if item.has("stiffness") else STIFFNESS,
            bias=item["bias"].number(at_least=0.0) if item.has("bias") else 10.0,
            muscle_rows=np.array([self._muscles[n] for n in muscles], dtype=np.intp),
            position_rows=np.array([tree.position_names.index(n) for n in joints], dtype=np.intp),
            velocity_rows=np.array([tree.velocity_names.index(n) for n in joints], dtype=np.intp),
            source=item.document.source,
        )

    def check_complete(self, item: Field, boards: Sequence[BoardLayout]) -> None:
        """Check that nothing is on two boards, and that nothing is missing."""
        for kind in ("muscles", "joints"):
            names = [name for board in boards for name in getattr(board, kind)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise item.error(f"{kind[:-1]} '{twice[0]}' is on two boards", "one board for it")
        placed = {name for board in boards for name in board.muscles}
        active = [m.name for m in self._robot.muscles if m.actuator.accepted_commands]
        missing = [name for name in active if name not in placed]
        if missing:
            raise item.error(f"no board has the muscles {', '.join(missing)}", "every muscle")
        sensed = {name for board in boards for name in board.joints}
        missing = [name for name in self._tree.velocity_names if name not in sensed]
        if sensed and missing:
            raise item.error(
                f"no board has the joints {', '.join(missing)}", "sensors of all joints, or none"
            )

    def _names(self, item: Field, key: str, known: list[str], most: int) -> tuple[str, ...]:
        if isinstance(item[key].value, list) and not item[key].value:
            return ()
        entries = item[key].items()
        if len(entries) > most:
            raise item[key].error(f"has {len(entries)} names", f"at most {most} on one board")
        for i, entry in enumerate(entries):
            name = entry.text(known)
            if name in [earlier.value for earlier in entries[:i]]:
                raise entry.error(f"'{name}' appears twice", "every name once")
            if key == "muscles" and not self._robot.muscle(name).actuator.accepted_commands:
                raise entry.error(f"muscle '{name}' is passive", "muscles that take commands")
        return tuple(entry.text() for entry in entries)

    def _port(self, item: Field) -> str:
        def value(found: re.Match[str]) -> str:
            key = found.group(1)
            if key not in self._ports:
                ports = ", ".join(dict.fromkeys(self._ports.values())) or "none"
                raise item.error(
                    f"{{{key}}} stands for no port; given: {ports}",
                    "port:=/dev/ttyACM0 for {port}; port:=/dev/ttyACM0,/dev/ttyACM1 for {port_1}, "
                    "{port_2}",
                )
            return self._ports[key]

        return _PLACEHOLDER.sub(value, item.text())

    def _rate(self, item: Field) -> int:
        if not item.has("baudrate") or item["baudrate"].value == "{baudrate}":
            return self._baudrate or BAUDRATE
        return item["baudrate"].whole(at_least=9600)

    def _limits(self, item: Field, muscles: tuple[str, ...]) -> tuple[MuscleLimits, ...]:
        common = self._given(item["limits"]) if item.has("limits") else {}
        single = item["muscle_limits"] if item.has("muscle_limits") else None
        names = single.mapping(muscles) if single else []
        out = []
        for name in muscles:
            given = common | (self._given(single[name]) if single and name in names else {})
            values = default_limits(self._robot.muscle(name), self._window(name, given)) | given
            try:
                out.append(check_limits(values))
            except CardsError as error:
                place = single[name] if single and name in names else item
                place = item["limits"] if place is item and item.has("limits") else place
                raise _limit_error(place, name, error) from None
        return tuple(out)

    def _given(self, item: Field) -> dict[str, float]:
        return {name: item[name].number(at_least=0.0) for name in item.mapping(NAMES)}

    def _window(self, name: str, given: Mapping[str, float]) -> tuple[float, float]:
        if "length_min" in given and "length_max" in given:
            return given["length_min"], given["length_max"]
        if self._windows is None:
            self._dynamics = self._dynamics or make_dynamics(self._robot)
            self._windows = length_windows(self._dynamics)
        low, high = self._windows[self._muscles[name]].tolist()
        return low, high


def _limit_error(place: Field, muscle: str, error: CardsError) -> DescriptionError:
    return place.error(f"limits of muscle '{muscle}': {error}", "limits that fit together")
