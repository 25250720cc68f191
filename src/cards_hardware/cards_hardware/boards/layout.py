"""Which board, on which port, has which muscles and joints; read from ``<robot>.boards.yaml``.

Format::

    robot: roboy_arm                    # as the file's name
    unattended: {hold: 10.0}            # without the host that armed, see `Unattended`
    boards:
      - name: arm                       # for messages and diagnostics
        node: 1                         # address, 1..126; every board has its own
        port: "{port}"                  # or a path such as /dev/serial/by-id/usb-...
        baudrate: "{baudrate}"          # or a number; 1000000 without it
        namespace: left_arm             # of the bridge that owns the board; optional
        muscles: [motor0, motor1]       # in the order of the board's channels
        joints: [shoulder, elbow]       # in the order of its joint sensors; may be left out
        limits: {tension_max: 400.0}    # of all its muscles, see `MuscleLimits`
        muscle_limits: {motor0: {tension_max: 300.0}}
        impedance: {stiffness: 20000.0} # of all its muscles, see `MuscleImpedance`
        muscle_impedance: {motor0: {damping: 50.0}}

``{port}`` stands for the launch argument; where that names several ports, separated by commas,
``{port_1}`` is the first. Every muscle that takes commands must be on a board. Either all
coordinates of the robot have a sensor, or none: then they are estimated from muscle lengths.

Limits are what a board enforces by itself. Tension limits come from the model. The window of
lengths is what the model's muscle can have within the joint limits, and a margin: it keeps a motor
from winding up a wire that came loose. The others are of the motor unit, which the model does not
know.

Impedance laws are the model's where nothing is said.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.shared_files import shared_folders
from cards_core.typing import Array
from cards_core.yaml_fields import Field, read_yaml
from cards_hardware.protocol.enums import ParameterId
from cards_hardware.protocol.schema import MAX_JOINTS, MAX_MUSCLES

LENGTH_MARGIN = 0.02
"""Beyond the lengths that the model's joint limits allow, [m]."""

_SAMPLES = 4096
_CORNERS = 10  # coordinates up to which all corners of the joint limits are looked at
_SPAN = math.pi  # [rad] of a coordinate without limits


@dataclass(frozen=True)
class MuscleLimits:
    """Limits of one muscle, as in the message LIMITS.

    Attributes:
        tension_max: Largest tension that may be commanded, [N].
        tension_min: Minimum tension that may be commanded, [N].
        tension_safe: Tension of an armed or stopped robot: nothing drops, no wire jumps off, [N].
        length_min, length_max: Below the board does not pull, above it holds against, [m].
        rate_max: Fastest change of the length, [m/s].
        current_max: Largest current of the motor, [A].
        soft, hard: Housing temperatures where derating begins and where it reached zero, [C].
        slew: Fastest change of the tension, [N/s]. It guards against wrong commands, and must
            leave room for right ones: a computed-torque loop with kp 2000 /s^2 answers an error of
            1 mm with changes of some kN/s; a limit below that delays it until it diverges.
    """

    tension_max: float
    tension_min: float = 0.0
    tension_safe: float = 10.0
    length_min: float = 0.0
    length_max: float = 100.0
    rate_max: float = 1.0
    current_max: float = 15.0
    soft: float = 60.0
    hard: float = 80.0
    slew: float = 20_000.0


NAMES: tuple[str, ...] = tuple(item.name for item in fields(MuscleLimits))
"""Names of the limits, as in files."""

# what the fields of the message hold, and below zero nothing makes sense
_LARGEST: Mapping[str, float] = {
    "tension_max": 3276.0,
    "tension_min": 3276.0,
    "tension_safe": 3276.0,
    "length_min": 2000.0,
    "length_max": 2000.0,
    "rate_max": 3.2,
    "current_max": 32.0,
    "soft": 300.0,
    "hard": 300.0,
    "slew": 65000.0,
}


@dataclass(frozen=True)
class MuscleImpedance:
    """Parameters of the muscle impedance law on the board.

    T = max(T_floor, T0 + K (l - l0) + B (dl/dt - v0)), and then the limits; the set-points l0, v0
    and T0 are commanded.

    Attributes:
        stiffness: K, [N/m].
        damping: B, [N s/m].
        tension_floor: T_floor, [N].
    """

    stiffness: float = 0.0
    damping: float = 0.0
    tension_floor: float = 0.0


IMPEDANCE: Mapping[str, ParameterId] = {
    "stiffness": ParameterId.STIFFNESS,
    "damping": ParameterId.DAMPING,
    "tension_floor": ParameterId.TENSION_FLOOR,
}
"""Parameter of the board for each number of `MuscleImpedance`."""


@dataclass(frozen=True)
class Unattended:
    """What a stopped robot does without the host that armed it.

    In FAULT and ESTOP the boards hold the safe tensions for `hold`, then let them fall to zero
    within `ramp` and switch the drives off. In the ramp a muscle that pays out at a rate r keeps
    min(1, r / lowering_rate) of its safe tension.

    Attributes:
        hold: Time since the last heartbeat of the host that armed, [s].
        ramp: Length of the ramp, [s].
        lowering_rate: Rate at which a load that the safe tensions carry sinks at most, [m/s]; 0:
            a plain ramp.
    """

    hold: float = ParameterId.UNATTENDED_HOLD.default * ParameterId.UNATTENDED_HOLD.scale
    ramp: float = ParameterId.UNATTENDED_RAMP.default * ParameterId.UNATTENDED_RAMP.scale
    lowering_rate: float = ParameterId.LOWERING_RATE.default * ParameterId.LOWERING_RATE.scale


UNATTENDED: Mapping[str, ParameterId] = {
    "hold": ParameterId.UNATTENDED_HOLD,
    "ramp": ParameterId.UNATTENDED_RAMP,
    "lowering_rate": ParameterId.LOWERING_RATE,
}
"""Parameter of the board for each number of `Unattended`."""


def check_impedance(values: Mapping[str, float], limits: MuscleLimits) -> MuscleImpedance:
    """Return the parameters of the impedance law.

    Args:
        values: Some of them; the others have their defaults.
        limits: Of the muscle.

    Raises:
        CardsError: A value is beyond what the protocol carries, or the floor is beyond the limits
            of the tension.
    """
    given = {"tension_floor": limits.tension_min} | dict(values)
    for name, parameter in IMPEDANCE.items():
        largest = parameter.maximum * parameter.scale
        if not 0.0 <= given.get(name, 0.0) <= largest:
            raise CardsError(f"{name} is {given[name]:g}, expected 0 .. {largest:g}")
    if not limits.tension_min <= given["tension_floor"] <= limits.tension_max:
        raise CardsError(
            f"tension_floor is {given['tension_floor']:g}, expected tension_min .. tension_max, "
            f"which are {limits.tension_min:g} and {limits.tension_max:g}"
        )
    return MuscleImpedance(**given)


def default_limits(muscle: Muscle, window: tuple[float, float]) -> dict[str, float]:
    """Return the default limits of a muscle, by name.

    Args:
        muscle: A muscle of the model.
        window: Smallest and largest length, [m].
    """
    base = MuscleLimits(tension_max=muscle.tension_max)
    values = {name: float(getattr(base, name)) for name in NAMES}
    values["tension_min"] = muscle.tension_min
    values["tension_safe"] = max(base.tension_safe, muscle.tension_min)
    values["length_min"], values["length_max"] = window
    return values


def check_limits(values: Mapping[str, float]) -> MuscleLimits:
    """Return the limits.

    Raises:
        CardsError: They contradict each other, or are beyond what the protocol carries; the
            message names the limit and what would be right.
    """
    for name, largest in _LARGEST.items():
        if not 0.0 <= values[name] <= largest:
            raise CardsError(f"{name} is {values[name]:g}, expected 0 .. {largest:g}")
    ordered = (
        ("tension_min", "tension_safe"),
        ("tension_safe", "tension_max"),
        ("length_min", "length_max"),
        ("soft", "hard"),
    )
    for low, high in ordered:
        if values[low] > values[high]:
            raise CardsError(
                f"{low} is {values[low]:g}, expected at most {high}, which is {values[high]:g}"
            )
    for name in ("tension_max", "rate_max", "current_max", "slew"):
        if values[name] == 0.0:
            raise CardsError(f"{name} is 0, expected more")
    return MuscleLimits(**{name: float(values[name]) for name in NAMES})


def length_windows(dynamics: Dynamics, margin: float = LENGTH_MARGIN) -> Array:
    """Return the lengths that muscles have within the joint limits, shape (m, 2), [m].

    The extremes over all corners of the limits (up to ten coordinates) and 4096 random poses,
    widened by the margin.

    Args:
        dynamics: Dynamics of the robot.
        margin: [m]
    """
    tree = dynamics.tree
    rng = np.random.default_rng(0)
    poses = [tree.home, *(tree.random(rng, span=_SPAN) for _ in range(_SAMPLES))]
    limited = np.flatnonzero(np.isfinite(tree.lower) & np.isfinite(tree.upper))
    if len(limited) <= _CORNERS:
        ends = [(tree.lower[i], tree.upper[i]) for i in limited]
        for corner in itertools.product(*ends):
            pose = tree.random(rng, span=_SPAN)
            pose[limited] = corner
            poses.append(pose)
    lengths = dynamics.batch(np.array(poses)).muscle_lengths
    low = np.nanmin(lengths, axis=0) - margin
    return np.stack([np.maximum(low, 0.0), np.nanmax(lengths, axis=0) + margin], axis=1)


def limited_muscles(robot: Robot, limits: Mapping[str, MuscleLimits]) -> tuple[Muscle, ...]:
    """Return the muscles with the narrower of the model's and the boards' tension limits."""
    out = []
    for muscle in robot.muscles:
        limit = limits.get(muscle.name)
        if limit is not None:
            low = max(muscle.tension_min, limit.tension_min)
            high = min(muscle.tension_max, limit.tension_max)
            muscle = replace(muscle, tension_min=low, tension_max=high)  # noqa: PLW2901
        out.append(muscle)
    return tuple(out)


SUFFIX = ".boards.yaml"
BAUDRATE = 1_000_000
"""Without another one, [baud]; boards on USB ignore it."""

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
    "impedance",
    "muscle_impedance",
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
        impedance: Impedance law of every muscle, in that order.
        unattended: What it does without the host that armed it.
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
    impedance: tuple[MuscleImpedance, ...] = ()
    unattended: Unattended = Unattended()
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
        """Return the robot as its boards have it.

        With tension limits that neither model nor boards object to, and the boards' impedance
        laws.
        """
        limits = {
            name: limit
            for board in self.boards
            for name, limit in zip(board.muscles, board.limits, strict=True)
        }
        laws = {
            name: asdict(law)
            for board in self.boards
            for name, law in zip(board.muscles, board.impedance, strict=True)
        }
        muscles = tuple(
            replace(muscle, control=replace(muscle.control, **laws.get(muscle.name, {})))
            for muscle in limited_muscles(robot, limits)
        )
        return replace(robot, muscles=muscles)


def layout_folders() -> list[Path]:
    """Return the existing folders with layouts, in the order of search."""
    return shared_folders("config")


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
    top.mapping(("robot", "unattended", "boards"))
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
    unattended = _unattended(top["unattended"]) if top.has("unattended") else Unattended()
    reader = _Reader(robot, _ports(port), baudrate, dynamics, unattended)
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
        unattended: Unattended,
    ) -> None:
        self._robot = robot
        self._unattended = unattended
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
        limits = self._limits(item, muscles)
        return BoardLayout(
            name=item["name"].name(),
            node=node,
            port=self._port(item["port"]),
            baudrate=self._rate(item),
            muscles=muscles,
            joints=joints,
            limits=limits,
            impedance=self._impedance(item, muscles, limits),
            unattended=self._unattended,
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
        common = _given(item["limits"], NAMES) if item.has("limits") else {}
        single = item["muscle_limits"] if item.has("muscle_limits") else None
        names = single.mapping(muscles) if single else []
        out = []
        for name in muscles:
            given = common | (_given(single[name], NAMES) if single and name in names else {})
            values = default_limits(self._robot.muscle(name), self._window(name, given)) | given
            try:
                out.append(check_limits(values))
            except CardsError as error:
                place = single[name] if single and name in names else item
                place = item["limits"] if place is item and item.has("limits") else place
                raise _limit_error(place, name, error) from None
        return tuple(out)

    def _impedance(
        self, item: Field, muscles: tuple[str, ...], limits: tuple[MuscleLimits, ...]
    ) -> tuple[MuscleImpedance, ...]:
        common = _given(item["impedance"], tuple(IMPEDANCE)) if item.has("impedance") else {}
        single = item["muscle_impedance"] if item.has("muscle_impedance") else None
        names = single.mapping(muscles) if single else []
        out = []
        for name, limit in zip(muscles, limits, strict=True):
            own = _given(single[name], tuple(IMPEDANCE)) if single and name in names else {}
            control = self._robot.muscle(name).control
            model = {key: getattr(control, key) for key in IMPEDANCE}
            stated = {key: value for key, value in model.items() if value is not None}
            try:
                out.append(check_impedance(stated | common | own, limit))
            except CardsError as error:
                place = item["impedance"] if item.has("impedance") else item
                place = single[name] if single and own else place
                raise place.error(
                    f"impedance of muscle '{name}': {error}", "what board and limits allow"
                ) from None
        return tuple(out)

    def _window(self, name: str, given: Mapping[str, float]) -> tuple[float, float]:
        if "length_min" in given and "length_max" in given:
            return given["length_min"], given["length_max"]
        if self._windows is None:
            self._dynamics = self._dynamics or make_dynamics(self._robot)
            self._windows = length_windows(self._dynamics)
        low, high = self._windows[self._muscles[name]].tolist()
        return low, high


def _unattended(item: Field) -> Unattended:
    given = _given(item, tuple(UNATTENDED))
    for name, value in given.items():
        parameter = UNATTENDED[name]
        low, high = parameter.minimum * parameter.scale, parameter.maximum * parameter.scale
        if not low <= value <= high:
            raise item[name].error(f"is {value:g} {parameter.unit}", f"{low:g} .. {high:g}")
    return Unattended(**given)


def _given(item: Field, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers of a mapping in which only these names may stand."""
    return {name: item[name].number(at_least=0.0) for name in item.mapping(names)}


def _limit_error(place: Field, muscle: str, error: CardsError) -> DescriptionError:
    return place.error(f"limits of muscle '{muscle}': {error}", "limits that fit together")
