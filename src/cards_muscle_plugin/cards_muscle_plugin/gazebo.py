"""The ports, by Gazebo's Python bindings: one source for gz-sim 8 (Harmonic) to 10 (Jetty)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cards_core.errors import CardsError, CompilationError
from cards_core.typing import Array
from cards_muscle_plugin.bodies import OneByOne
from cards_muscle_plugin.native_bodies import load_bodies
from cards_muscle_plugin.ports import (
    Bodies,
    JointInfo,
    MeasuredJoint,
    MovingLink,
    PulledLink,
    StepInfo,
)
from cards_ros.gazebo_bindings import Bindings

_NULL = 0  # K_NULL_ENTITY

_REQUEST_TIMEOUT = 100
"""[ms]. The services are in this process, where a request is a plain function call."""

# gz.msgs.WorldControl: pause = 2, multi_step = 4, reset = 5 {all = 2}; gz.msgs.ServerControl:
# stop = 6. As bytes, because gz.msgs would need Python's protobuf in Gazebo's Python.
_PAUSE, _ONE_STEP, _RESET_ALL, _STOP = b"\x10\x01", b"\x20\x01", b"\x2a\x02\x10\x01", b"\x30\x01"


def step_info(info: Any) -> StepInfo:
    """Translate ``UpdateInfo``, whose times are `timedelta`."""
    return StepInfo(_nanoseconds(info.sim_time), _nanoseconds(info.dt), info.paused)


def _nanoseconds(time: timedelta) -> int:
    # whole numbers all the way: a stamp must survive exactly
    return ((time.days * 86400 + time.seconds) * 1_000_000 + time.microseconds) * 1000


class GazeboModel:
    """`ModelPort` of an entity.

    Args:
        gz: The bindings.
        entity: Of the model that holds the plugin.
        ecm: Gazebo's entity component manager. It is valid during the call that it comes with:
            every call of the system starts with `bind`.

    Attributes:
        slow: Why links are read one by one; empty if they are read in one native call.

    Raises:
        CardsError: The entity is no model.
    """

    def __init__(self, gz: Bindings, entity: int, ecm: Any) -> None:
        self.gz = gz
        self.ecm = ecm
        self._model = gz.sim.Model(entity)
        if not self._model.valid(ecm):
            raise CardsError("the plugin is not in a <model> (expected: <plugin> in one)")
        self._world = world = gz.sim.World(gz.sim.world_entity(ecm))
        self.world_name: str = world.name(ecm)
        self.path = next(_paths(gz, ecm, entity, world.models(ecm), ()), (self._model.name(ecm),))
        source = self._model.source_file_path(ecm)
        # models made from text have a name in angle brackets or none
        self.file = Path(source) if source and Path(source).is_file() else None
        self.static: bool = self._model.static(ecm)
        self.native: Any = None
        self.slow = ""
        try:
            self.native = load_bodies(gz)
        except CompilationError as error:
            self.slow = str(error)

    def bind(self, ecm: Any) -> None:
        """Use this manager until the present call of the system ends."""
        self.ecm = ecm

    def exists(self) -> bool:
        """See `HoldingModelPort`."""
        return bool(self._model.valid(self.ecm))

    def gravity(self) -> Sequence[float] | None:
        """Return the gravity of the world in its axes, [m/s^2]; None if it is not known."""
        found = self._world.gravity(self.ecm)
        return None if found is None else (found.x(), found.y(), found.z())

    def link_names(self) -> list[str]:
        """See `HoldingModelPort`."""
        names = []
        for prefix, model in self._models():
            for entity in sorted(model.links(self.ecm)):
                names.append(prefix + self.gz.sim.Link(entity).name(self.ecm))
        return names

    def joints(self) -> list[JointInfo]:
        """See `ModelPort`."""
        found = []
        ecm = self.ecm
        for prefix, model in self._models():
            # entities are numbered in the order of the file
            for entity in sorted(model.joints(ecm)):
                joint = self.gz.sim.Joint(entity)
                parent, child = joint.parent_link_name(ecm), joint.child_link_name(ecm)
                found.append(
                    JointInfo(
                        prefix + joint.name(ecm),
                        joint.type(ecm).name.lower(),
                        parent if parent == "world" else prefix + parent,
                        prefix + child,
                    )
                )
        return found

    def link(self, name: str, *, moving: bool) -> GazeboLink | None:
        """See `HoldingModelPort`."""
        return self._link(self._model, name, moving)

    def neighbour(self, model: str, link: str) -> GazeboLink | None:
        """See `ModelPort`."""
        entity = self._world.model_by_name(self.ecm, model)
        return None if entity == _NULL else self._link(self.gz.sim.Model(entity), link, True)

    def _link(self, root: Any, name: str, moving: bool) -> GazeboLink | None:
        model, own = self._owner(name, root)
        entity = _NULL if model is None else model.link_by_name(self.ecm, own)
        if entity == _NULL:
            return None
        link = self.gz.sim.Link(entity)
        if moving:
            link.enable_velocity_checks(self.ecm)
        return GazeboLink(self, link)

    def joint(self, name: str) -> GazeboJoint | None:
        """See `HoldingModelPort`."""
        model, own = self._owner(name, self._model)
        entity = _NULL if model is None else model.joint_by_name(self.ecm, own)
        if entity == _NULL:
            return None
        joint = self.gz.sim.Joint(entity)
        joint.enable_position_check(self.ecm)
        joint.enable_velocity_check(self.ecm)
        return GazeboJoint(self, joint)

    def bodies(
        self,
        links: Sequence[MovingLink],
        joints: Sequence[MeasuredJoint],
        pulled: Sequence[PulledLink],
    ) -> Bodies:
        """See `HoldingModelPort`."""
        if self.native is None:
            return OneByOne(links, joints, pulled)
        return NativeBodies(self, links, joints, pulled)

    def _owner(self, name: str, model: Any) -> tuple[Any, str]:
        """Return the model within another that a name leads to, None without, and the rest."""
        *models, own = name.split("::")
        for wanted in models:
            for entity in model.models(self.ecm):
                inner = self.gz.sim.Model(entity)
                if inner.name(self.ecm) == wanted:
                    model = inner
                    break
            else:
                return None, own
        return model, own

    def _models(self) -> Iterator[tuple[str, Any]]:
        """Yield this model and those nested in it, with the prefix of their names."""
        stack = [("", self._model)]
        while stack:
            prefix, model = stack.pop()
            yield prefix, model
            for entity in sorted(model.models(self.ecm), reverse=True):
                inner = self.gz.sim.Model(entity)
                stack.append((f"{prefix}{inner.name(self.ecm)}::", inner))


def _paths(
    gz: Bindings, ecm: Any, wanted: int, models: Sequence[int], above: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for entity in models:
        model = gz.sim.Model(entity)
        path = (*above, model.name(ecm))
        if entity == wanted:
            yield path
        yield from _paths(gz, ecm, wanted, model.models(ecm), path)


class NativeBodies:
    """`Bodies` in one native call each; arguments as of `OneByOne`, whose ports are Gazebo's."""

    def __init__(
        self,
        model: GazeboModel,
        links: Sequence[MovingLink],
        joints: Sequence[MeasuredJoint],
        pulled: Sequence[PulledLink],
    ) -> None:
        self._model = model
        self._bodies = model.native.Bodies(
            [(_entity(port), pose, twist) for port, pose, twist in links],
            [(_entity(port), positions, velocities) for port, positions, velocities in joints],
            [(row, _entity(port)) for row, port in pulled],
        )

    def read(self) -> int:
        """See `Bodies`."""
        return int(self._bodies.read(self._model.ecm))

    def pull(self, wrenches: Array) -> None:
        """See `Bodies`."""
        self._bodies.pull(self._model.ecm, wrenches)


def _entity(port: Any) -> int:
    return int(port.entity)


class GazeboLink:
    """`LinkPort` of a link.

    Attributes:
        entity: Its number.
    """

    def __init__(self, model: GazeboModel, link: Any) -> None:
        self._model = model
        self._link = link
        self.entity: int = link.entity()
        self._vector = model.gz.math.Vector3d

    def read_pose(self, pose: Array) -> bool:
        """See `LinkPort`."""
        found = self._link.world_pose(self._model.ecm)
        if found is None:
            return False
        place, turn = found.pos(), found.rot()
        w, x, y, z = turn.w(), turn.x(), turn.y(), turn.z()
        pose[:3] = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), place.x()),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), place.y()),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), place.z()),
        )
        return True

    def read_twist(self, twist: Array) -> bool:
        """See `LinkPort`."""
        v = self._link.world_linear_velocity(self._model.ecm)
        w = self._link.world_angular_velocity(self._model.ecm)
        if v is None or w is None:
            return False
        twist[:] = (v.x(), v.y(), v.z(), w.x(), w.y(), w.z())
        return True

    def move(self, twist: Sequence[float]) -> None:
        """Give a link that nothing holds a velocity for the next step.

        Args:
            twist: Of its origin, and angular, in the link's own axes, (6,), [m/s, rad/s].
        """
        if self._model.native is not None:
            self._model.native.move(self._model.ecm, self.entity, twist)
            return
        vx, vy, vz, wx, wy, wz = twist
        self._link.set_linear_velocity(self._model.ecm, self._vector(vx, vy, vz))
        self._link.set_angular_velocity(self._model.ecm, self._vector(wx, wy, wz))

    def add_wrench(self, wrench: Sequence[float]) -> None:
        """See `LinkPort`."""
        fx, fy, fz, tx, ty, tz = wrench
        force, torque = self._vector(fx, fy, fz), self._vector(tx, ty, tz)
        self._link.add_world_wrench(self._model.ecm, force, torque)


class GazeboJoint:
    """`JointPort` of a joint.

    Attributes:
        entity: Its number.
    """

    def __init__(self, model: GazeboModel, joint: Any) -> None:
        self._model = model
        self._joint = joint
        self.entity: int = joint.entity()

    def read(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """See `JointPort`."""
        positions = self._joint.position(self._model.ecm)
        velocities = self._joint.velocity(self._model.ecm)
        # empty until physics has filled them
        return (positions, velocities) if positions and velocities else None

    def put(self, positions: Sequence[float]) -> None:
        """See `JointPort`."""
        self._joint.reset_position(self._model.ecm, list(positions))
        self._joint.reset_velocity(self._model.ecm, [0.0] * len(positions))

    def drive(self, efforts: Sequence[float]) -> None:
        """See `JointPort`. Gazebo forgets the force after the step."""
        self._joint.set_force(self._model.ecm, list(efforts))


class GazeboWorld:
    """`WorldPort` through the services of gz-transport.

    A blocking request from inside the simulator would stop it until the timeout, if the service
    were in another process. World control is in this one: gz-transport finds the replier here and
    calls it directly (Node::Request), which takes some ten microseconds.

    Args:
        gz: The bindings.
        name: Of the world.
    """

    def __init__(self, gz: Bindings, name: str) -> None:
        self._node = None if gz.transport is None else gz.transport.Node()
        self._control = f"/world/{name}/control"

    def pause(self, paused: bool) -> bool:
        """See `WorldPort`."""
        return self._request(self._control, _PAUSE if paused else b"", "WorldControl")

    def step(self) -> bool:
        """See `WorldPort`."""
        return self._request(self._control, _PAUSE + _ONE_STEP, "WorldControl")

    def rewind(self, paused: bool) -> bool:
        """See `WorldPort`."""
        request = _RESET_ALL if not paused else _PAUSE + _RESET_ALL
        return self._request(self._control, request, "WorldControl")

    def stop(self) -> bool:
        """See `WorldPort`."""
        return self._request("/server_control", _STOP, "ServerControl")

    def _request(self, service: str, request: bytes, kind: str) -> bool:
        if self._node is None:
            return False
        kinds = (f"gz.msgs.{kind}", "gz.msgs.Boolean")
        done, _answer = self._node.request_raw(service, request, *kinds, _REQUEST_TIMEOUT)
        return bool(done)
