"""The muscles of a robot as a host uses them: commands and link motion in, wrenches out.

One step of a host at time t: lengths and rates from the poses and twists of the links (engine),
tensions from these and the commands (actuator models, whose states advance to t + dt), and one
wrench per link from the tensions (engine).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.muscles.actuators.bank import ActuatorBank
from cards_core.muscles.actuators.thermal import MotorTemperatures
from cards_core.muscles.command import FORCE, IMPEDANCE
from cards_core.muscles.engine import MuscleEngine, MuscleState
from cards_core.muscles.explicit_steps import warn_if_unstable
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.muscles.implicit import ImplicitTensions
from cards_core.paths.layout import Indices
from cards_core.robot.elements import Collision, Link
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend


class MuscleSystem:
    """Muscle paths and actuator models of a robot.

    Args:
        robot: The description. Its joints give the mass matrix, without which no muscle counts
            as stiff; see `cards_core.muscles.implicit`.
        dt: Time step of the host, [s].
        backend: ``compiled`` or ``numeric``.
        engine_robot: The same robot with other link frames, if the host's poses refer to those.
        surroundings: What does not move and cables with ``contact`` touch, in the world.
        neighbours: Links of other models that these cables touch; see `MuscleEngine`.

    Attributes:
        engine: The paths.
        actuators: The actuator models and their states.
        implicit: Steps stiff muscles; None where there can be none.
        ideal: True if all muscles simply have the tension they are told.
        feeding: Where in the states of the actuators the rest length of each cable that touches
            is, -1 without one; None where no cable touches, or all are ideal.
        state_names: Names of the actuator states that are published, e.g. ``biceps/activation``.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float,
        backend: Backend = "compiled",
        *,
        engine_robot: Robot | None = None,
        surroundings: Sequence[Collision] = (),
        neighbours: Sequence[Link] = (),
    ) -> None:
        self.robot = robot
        self.engine = MuscleEngine(engine_robot or robot, backend, surroundings, neighbours)
        self.actuators = ActuatorBank(robot, dt, backend)
        self.ideal = self.actuators.ideal
        has_friction = self.engine.layout.friction
        self.implicit: ImplicitTensions | None = None
        springs = bool((self.actuators.stiffness + self.actuators.damping).any())
        # the implicit step knows no contacts: with cables that touch all are stepped explicitly
        if robot.joints and self.engine.contacts is None and (has_friction or springs):
            self.implicit = ImplicitTensions(
                robot, self.actuators, dt, backend, friction=has_friction
            )
        self._has_friction = has_friction
        self._dt = float(dt)
        # rest lengths of cables that touch
        self.feeding: Indices | None = None
        contacts = self.engine.contacts
        # one step for all of them: whether it is too long is found at the first poses
        free = all(joint.kind == "free" for joint in robot.joints)
        self._judged = contacts is None or not (springs and robot.joints and free)
        if contacts is not None and not self.ideal:
            contacts.set_step(dt)
            places = {name: i for i, name in enumerate(self.actuators.state_names)}
            touching = (robot.muscles[i].name for i in self.engine.touching)
            self.feeding = np.array([places.get(f"{name}/rest_length", -1) for name in touching])
        self.state_names: tuple[str, ...] = self.actuators.state_names
        names = [muscle.name for muscle in robot.muscles]
        self._temperatures = MotorTemperatures(names, self.state_names)
        self._still = np.zeros((len(robot.links), 6))

    @property
    def state_values(self) -> Array:
        """Values of `state_names` now, shape (len(state_names),); overwritten by the next step."""
        return self.actuators.state_values

    @property
    def temperatures(self) -> Array | None:
        """Of the muscles' motors, shape (m,), [degC], NaN for those without; None without any."""
        return self._temperatures.among(self.state_values)

    def reset(self, link_poses: Array) -> None:
        """Forget everything that was: actuators at rest for these poses, shape (n, 4, 4).

        The first time, a `RuntimeWarning` says if the cables of a robot of free bodies, some with
        ``contact``, are too stiff for the step; see `cards_core.muscles.explicit_steps`.
        """
        if not self._judged:
            self._judged = True
            stiffness, damping = self.actuators.stiffness, self.actuators.damping
            warn_if_unstable(self.engine, link_poses, stiffness, damping, self.actuators.dt)
        self.engine.reset()
        if self.implicit is not None:
            self.implicit.reset()
        lengths, _ = self.engine.motion(link_poses, self._still)
        self.actuators.reset(lengths)

    def step(
        self,
        link_poses: Array,
        link_twists: Array,
        joints: tuple[Array, Array],
        values: Array,
        kinds: npt.NDArray[np.intp] | None = None,
        *,
        motion: tuple[Array, Array] | None = None,
        impedance: ImpedanceLaw | None = None,
    ) -> MuscleState:
        """Return what the muscles do now, and advance the actuator states by dt.

        Args:
            link_poses: Link-to-world matrices, shape (n, 4, 4).
            link_twists: World velocity of each link's origin, then angular velocity in world
                axes, shape (n, 6), [m/s] and [rad/s].
            joints: Coordinates q, shape (nq,), and velocities qd, shape (nv,), that belong to
                these poses.
            values: What every muscle is told, shape (m,).
            kinds: Codes of `cards_core.muscles.command.KINDS`, shape (m,); tensions if None.
            motion: Lengths and rates for these poses and twists, shape (m,) each, if they have
                been asked for already.
            impedance: The law of muscles that are under it, with its set-points.
        """
        if impedance is not None and impedance.any_active and kinds is not None:
            # a controller measures, computes and then pulls: explicit, like the real one
            motion = motion or self.engine.motion(link_poses, link_twists)
            kinds = np.where(impedance.active, self.actuators.impedance_kinds, kinds)
            read = self.actuators.encoders(*motion)
            values = impedance.tensions(values, *read, self.actuators.dt)
        implicit = self.implicit
        if self.ideal and implicit is None:
            return self.engine.update(link_poses, link_twists, values)
        if kinds is None:
            kinds = np.zeros(len(values), dtype=np.intp)
        lengths, rates = motion or self.engine.motion(link_poses, link_twists)
        if implicit is None:
            feeding = self.feeding
            before = None if feeding is None else self.actuators.state[feeding]
            tensions = self.actuators.step(lengths, rates, kinds, values)
            if feeding is not None and before is not None:
                contacts, rests = self.engine.contacts, self.actuators.state[feeding]
                assert contacts is not None
                contacts.feeds[:] = np.where(feeding < 0, 0.0, (rests - before) / self._dt)
                told = kinds[self.engine.touching]
                spring = (feeding >= 0) & (told != FORCE) & (told != IMPEDANCE)
                contacts.rests[:] = np.where(spring, rests, np.nan)
        else:
            tensions = implicit.step(lengths, rates, kinds, values, joints)
            if self._has_friction:
                self.engine.mobility[:] = implicit.mobility
        return self.engine.update(link_poses, link_twists, tensions)
