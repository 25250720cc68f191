"""The browser view of robots with muscles that are simulated in this process.

Pages run in threads of their own (`cards_viz.pages.page`). What their buttons ask for is queued,
and done by the simulation between two steps.
"""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.pacing import Pacer
from cards_core.muscles.command import CommandPart, CommandRefusedError, command_limits
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_saving import save_parameters
from cards_core.robot.actuators import CommandKind
from cards_core.saved_states import SavedStates
from cards_core.trajectories.base import Reference
from cards_core.trajectories.live import TARGET_SPEEDS, PoseMotion, joint_target
from cards_core.typing import Array
from cards_sim.build import PlacedRobot, Simulation
from cards_viz.labels import Labels, joint_labels, operational_labels
from cards_viz.muscles.interface import MuscleSnapshot, Switch
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.pushing import Push
from cards_viz.muscles.tracking import Tracking, tracked
from cards_viz.muscles.world_scene import WorldScene

RATE = 30.0
"""Snapshots a second that are handed over, [Hz]."""

PATIENCE = 0.05
"""How long a paused simulation waits between two looks at the queue, [s]."""

PUSHED = 0.02
"""How long a push lasts that is not renewed, [s] of the simulation; it is, in every step."""

SPEED_PERIOD = 1.0
"""Over how long the ratio of simulated to elapsed time is taken, [s]."""


class MuscleSession:
    """Steps a simulation, shows it on pages, and does what their buttons ask for.

    Args:
        simulation: The world and its robots.
        pacer: Of the loop that steps; None where it runs as fast as possible.
        parameter_file: In which gains are saved; None: nowhere.

    Attributes:
        pages: Those that are open.
        paused: Whether the simulation stands still.
        stopped: Whether an emergency stop holds.
        states: Saved states, in memory: they end with the run.
    """

    def __init__(
        self, simulation: Simulation, pacer: Pacer | None, parameter_file: Path | None = None
    ) -> None:
        self.parameter_file = parameter_file
        self._simulation = simulation
        self._pacer = pacer
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.pages: list[RobotPage] = []
        self.paused = self.stopped = False
        self.states = SavedStates(simulation.world.simulator.world.name)
        self._single = False
        self._shown = -math.inf
        self._marked = (time.monotonic(), 0)
        self.real_time_factor: float | None = None

    def open(
        self,
        robot: PlacedRobot,
        control: ControlLoop | None,
        parameters: ParameterSet | None,
        *,
        port: int,
        host: str = "127.0.0.1",
        world: WorldScene | None = None,
    ) -> str:
        """Open the page of a robot; return its address.

        Args:
            robot: The robot.
            control: What commands it, if anything.
            parameters: Of the controller.
            port: Wanted port.
            host: Address to listen on.
            world: What is around the robot, if anything.

        Raises:
            PortError: No port to listen on.
        """
        page = RobotPage(self, robot, control, parameters, world)
        self.pages.append(page)
        page.open(host, port)
        return page.page.url

    def close(self) -> None:
        """Close all pages."""
        for page in self.pages:
            page.page.stop()

    def stepping(self, step: Callable[[], None]) -> Callable[[], None]:
        """Return what steps the simulation and serves the pages.

        Args:
            step: Steps it; see `cards_core.loop.closed_loop.run_closed_loops`.
        """

        def stepped() -> None:
            for page in self.pages:
                page.command_by_hand()
                page.push_by_hand()
            step()
            self._show(time.monotonic())
            self._serve()

        return stepped

    def later(self, action: Callable[[], None]) -> None:
        """Do something between two steps; may be called from any thread."""
        self._todo.put(action)

    def _serve(self) -> None:
        """Do what was asked for; while the simulation is paused, wait for more."""
        waited = False
        self._single = False
        while True:
            try:
                action = self._todo.get(timeout=PATIENCE) if waited else self._todo.get_nowait()
            except queue.Empty:
                if not self.paused:
                    break
            else:
                action()
                self._shown = -math.inf
                if self._single:
                    break
                continue
            waited = True
            self._show(time.monotonic())
        if waited and self._pacer is not None:
            self._pacer.resume(time.perf_counter())

    def _show(self, now: float) -> None:
        if now - self._shown < 1.0 / RATE:
            return
        self._shown = now
        since, stamp = self._marked
        if now - since >= SPEED_PERIOD:
            elapsed = 1e-9 * (self._simulation.world.stamp - stamp)
            self.real_time_factor = max(elapsed, 0.0) / (now - since)
            self._marked = (now, self._simulation.world.stamp)
        for page in self.pages:
            page.show()

    # What all pages share ---------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Pause or go on."""
        self.paused = paused

    def single(self) -> None:
        """Take one step, and pause again."""
        self._single = self.paused = True

    def reset(self) -> None:
        """Go back to time zero with everything; the logs begin their next parts."""
        self._simulation.world.reset()
        for page in self.pages:
            page.restart()
        self.stopped = False

    def save(self, name: str) -> None:
        """Save the present state of everything. Raises `CardsError` for a name that is none."""
        hands = [page.hand for page in self.pages]
        self.states.save(name, {"world": self._simulation.world.simulator.save(), "hands": hands})

    def restore(self, name: str) -> None:
        """Begin again, at time zero, in a saved state. Raises `UnknownNameError`."""
        state = self.states[name]
        self._simulation.world.restore(state["world"])
        for page, hand in zip(self.pages, state["hands"], strict=True):
            page.restart()
            page.take_hand(hand)
        self.stopped = False

    def estop(self) -> None:
        """Let go of all muscles until the next reset."""
        self._simulation.world.estop()
        self.stopped = True

    def set_speed(self, factor: float) -> None:
        """Set simulated seconds per second. Raises `CardsError` where time is not paced."""
        pacer = self._pacer
        if pacer is None:
            raise CardsError("speed not set: the simulation runs as fast as it can")
        self.later(lambda: pacer.set_speed(factor))


class RobotPage:
    """The page of one robot; `cards_viz.muscles.interface.MuscleCommands` for its buttons.

    Args:
        session: What steps the robot.
        robot, control, parameters, world: As of `MuscleSession.open`.
    """

    page: MusclePage

    def __init__(
        self,
        session: MuscleSession,
        robot: PlacedRobot,
        control: ControlLoop | None,
        parameters: ParameterSet | None,
        world: WorldScene | None,
    ) -> None:
        self._session = session
        self._host = robot.host
        self._robot = robot.host.robot
        self._control = control
        self._parameters = parameters
        self._world = world
        self._live: dict[str, Any] = {}
        if parameters is not None:
            live = (spec for spec in parameters.specs if spec.live)
            self._live = {spec.name: parameters[spec.name] for spec in live}
        self._hand: dict[str, tuple[CommandKind, float]] = {}
        self._push: Push | None = None
        self._labels = None if control is None else _labels(control)

    def open(self, host: str, port: int) -> None:
        """Open the page."""
        self.page = MusclePage(self._robot, self, host=host, port=port, world=self._world)
        if self._control is not None and {"kp", "kd"} <= self._live.keys():
            gains = [np.atleast_1d(self._live[name]) for name in ("kp", "kd")]
            if any(gain.ndim == 2 for gain in gains):
                return  # there are no sliders for matrices
            kp, kd = (gain.tolist() for gain in gains)
            # a negative damping stands for critical damping
            kd = [d if d >= 0.0 else 2.0 * p**0.5 for p, d in zip(kp, kd, strict=True)]
            names = self._control.controller.error_names
            self.page.set_gains(kp, kd, names if len(names) == len(kp) else ())

    # Buttons, any thread ----------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Pause or continue the simulation."""
        self._session.later(lambda: self._session.pause(paused))

    def step(self) -> None:
        """Advance by one step, and pause."""
        self._session.later(self._session.single)

    def reset(self) -> None:
        """Return to the start at time zero."""
        self._session.later(self._session.reset)

    def estop(self, active: bool) -> None:
        """Let go of all muscles; releasing the stop resets the simulation."""
        self._session.later(self._session.estop if active else self._session.reset)

    def set_speed(self, factor: float) -> None:
        """Set simulated seconds per second."""
        self._session.set_speed(factor)

    def set_command(self, name: str, kind: CommandKind, value: float) -> None:
        """Command one muscle by hand, and let ideal cables keep their tension.

        Args:
            name: Of the muscle.
            kind: What it is told.
            value: [N], [m], [Pa] or 0..1.

        Raises:
            UnknownNameError: There is no such muscle.
            CardsError: A controller commands the muscles, or the muscle takes no such command.
        """
        muscles = {muscle.name: muscle for muscle in self._robot.muscles}
        check_choice(name, "muscle", muscles)
        if self._control is not None:
            running = self._control.controller.kind
            raise CardsError(
                f"{kind} of '{name}' not set: {running} commands the muscles (expected: "
                "--controller none)"
            )
        accepted = muscles[name].actuator.accepted_commands
        if kind not in accepted:
            raise CardsError(
                f"{kind} of '{name}' not set: it takes {' or '.join(accepted) or 'no'} commands"
            )
        self._session.later(lambda: self._set_hand(name, kind, value))

    def push(self, push: Push | None) -> None:
        """Pull at a link with a spring until told otherwise; None: let go."""
        self._session.later(lambda: self._set_push(push))

    def save(self, name: str) -> None:
        """Save the present state of everything under a name."""
        self._later(lambda: self._session.save(name))

    def load(self, name: str) -> None:
        """Begin again in a saved state; the controller begins its reference again."""
        self._later(lambda: self._session.restore(name))

    def delete(self, name: str) -> None:
        """Forget a saved state."""
        self._later(lambda: self._session.states.delete(name))

    def _later(self, action: Callable[[], None]) -> None:
        """Do something between two steps, and tell of a refusal."""

        def act() -> None:
            try:
                action()
            except CardsError as error:
                self.page.notify(str(error))

        self._session.later(act)

    def set_gains(self, kp: Sequence[float], kd: Sequence[float]) -> None:
        """Set the gains of the controller; raises `CardsError` for those that do not fit."""
        self._change({"kp": list(kp), "kd": list(kd)})

    def set_target(self, names: Sequence[str], target: Array) -> None:
        """Move smoothly to a target and stay there; a reset goes back to the reference.

        Args:
            names: Of the coordinates: joints, or axes of the hand's position.
            target: One value each, [rad] or [m].

        Raises:
            CardsError: No controller tracks these coordinates.
        """
        control = self._control
        if control is None or self._labels is None:
            raise CardsError("no target set: there is no controller with a reference")
        if tuple(names) != self._labels.names[: len(names)]:
            raise CardsError(
                f"no target set for {', '.join(names)} (expected: {', '.join(self._labels.names)})"
            )
        units = self._labels.units
        goal = np.array(target, dtype=float)

        def go() -> None:
            output = control.controller.output
            present = (
                output.desired.copy(),
                output.desired_dot.copy(),
                np.zeros_like(output.error),
            )
            try:
                motion: Reference
                if control.controller.space == "joint":
                    motion = joint_target(names, present, goal, units)
                else:
                    turn = output.desired[len(goal) :]
                    rotation = turn.copy() if turn.size else None
                    speed = TARGET_SPEEDS["m"]
                    motion = PoseMotion(present, goal, rotation, speed=speed)
                control.follow(motion, self._host.state.time)
            except CardsError as error:
                self.page.notify(str(error))

        self._session.later(go)

    def save_gains(self) -> None:
        """Write the present gains into the parameter file of the run."""
        control, file = self._control, self._session.parameter_file
        if control is None or not {"kp", "kd"} <= self._live.keys():
            raise CardsError("gains not saved: there is no controller with kp and kd")
        if file is None:
            raise CardsError("gains not saved: this run has no parameter file")
        gains = {name: np.atleast_1d(self._live[name]).tolist() for name in ("kp", "kd")}
        backup = save_parameters(file, control.controller.kind, gains)
        self.page.say(f"gains saved in {file}; as it was: {backup.name}")

    def set_switch(self, name: str, on: bool) -> None:
        """Set a boolean live parameter of the controller."""
        self._change({name: on})

    def _change(self, given: Mapping[str, Any]) -> None:
        control, parameters = self._control, self._parameters
        if control is None or parameters is None:
            raise CardsError(f"{', '.join(given)} not set: there is no controller")
        specs = {spec.name: spec for spec in parameters.specs if spec.live}
        for name in given:
            check_choice(name, f"live parameter of {control.controller.kind}", specs)
        checked = {name: specs[name].check(value) for name, value in given.items()}

        def change() -> None:
            try:
                control.controller.change({**self._live, **checked})
            except CardsError as error:
                self.page.notify(str(error))
            else:
                self._live |= checked

        self._session.later(change)

    # Between two steps ------------------------------------------------------------------------

    def _set_hand(self, name: str, kind: CommandKind, value: float) -> None:
        if not self._hand:
            now = self._host.state.measured("tensions")
            # others have a state of their own, which stays
            self._hand = {
                muscle.name: ("force", float(np.clip(now[i], *command_limits(muscle, "force"))))
                for i, muscle in enumerate(self._robot.muscles)
                if muscle.actuator.accepted_commands == ("force", "impedance")
            }
        self._hand[name] = (kind, value)

    @property
    def hand(self) -> dict[str, tuple[CommandKind, float]]:
        """Return what is commanded by hand, by muscle; a copy."""
        return dict(self._hand)

    def take_hand(self, hand: Mapping[str, tuple[CommandKind, float]]) -> None:
        """Command by hand what was commanded before."""
        self._hand = dict(hand)

    def command_by_hand(self) -> None:
        """Repeat what was commanded by hand, if anything."""
        if not self._hand or self._session.stopped:
            return
        kinds = dict.fromkeys(kind for kind, _ in self._hand.values())
        told = {k: {n: v for n, (kind, v) in self._hand.items() if kind == k} for k in kinds}
        try:
            self._host.submit(
                tuple(
                    CommandPart(k, tuple(t), np.array(list(t.values()))) for k, t in told.items()
                )
            )
        except CommandRefusedError as error:
            self._hand.clear()
            self.page.notify(str(error))

    def _set_push(self, push: Push | None) -> None:
        before, self._push = self._push, push
        if before is not None and (push is None or push.link != before.link):
            self._host.simulator.apply_wrench(before.link, (0.0, 0.0, 0.0), duration=PUSHED)

    def push_by_hand(self) -> None:
        """Pull at the link that is pushed, as long as the spring is about to last."""
        push = self._push
        if push is None:
            return
        simulator = self._host.simulator
        row = [link.name for link in self._robot.links].index(push.link)
        pose = np.linalg.inv(simulator.place.matrix) @ simulator.link_poses()[row]
        force = simulator.place.rotation @ push.force(pose)
        try:
            simulator.apply_wrench(push.link, force, duration=PUSHED, point=push.point)
        except CardsError as error:
            self._push = None
            self.page.notify(str(error))

    def restart(self) -> None:
        """Begin again after the robot was reset."""
        self._hand.clear()
        self._push = None
        if self._control is not None:
            self._control.start()

    def show(self) -> None:
        """Hand over the present state."""
        self.page.show(self.snapshot())

    def snapshot(self) -> MuscleSnapshot:
        """Return what there is to show now."""
        state, session = self._host.state, self._session
        values = state.measured("actuators")
        return MuscleSnapshot(
            state.time,
            state.q,
            state.measured("tensions"),
            states=dict(zip(self._host.actuator_names, values.tolist(), strict=True)),
            controller=None if self._control is None else self._control.controller.kind,
            paused=session.paused,
            stopped=session.stopped,
            real_time_factor=session.real_time_factor,
            bodies=self._bodies(),
            switches=self._switches(),
            saved=session.states.names,
            **self._signals(),
            **self._tracked(state.q),
        )

    def _bodies(self) -> dict[str, Array]:
        if self._world is None:
            return {}
        poses = self._host.simulator.world.pose
        return {name: self._world.in_robot_axes(poses(name)) for name in self._world.bodies}

    def _switches(self) -> tuple[Switch, ...]:
        if self._parameters is None:
            return ()
        specs = {spec.name: spec for spec in self._parameters.specs}
        return tuple(
            Switch(name, value, specs[name].description)
            for name, value in self._live.items()
            if isinstance(value, bool)
        )

    def _signals(self) -> dict[str, Any]:
        """Return released lengths and necessary tensions of all muscles, where there are any."""
        if self._control is None:
            return {}
        places = {muscle.name: i for i, muscle in enumerate(self._robot.muscles)}
        shown = {"relaxation": "released", "necessary_tension": "necessary"}
        out = {}
        for signal in self._control.controller.signals:
            if signal.name in shown and set(signal.names) <= places.keys():
                values = np.full(len(places), np.nan)
                values[[places[name] for name in signal.names]] = signal.read()
                out[shown[signal.name]] = values
        return out

    def _tracked(self, q: Array) -> dict[str, Any]:
        if self._control is None or self._labels is None or not np.isfinite(q).all():
            return {}
        output = self._control.controller.output
        tracking = Tracking(self._labels, output.desired.copy(), output.error.copy())
        found = tracked(tracking, self.page.scene, q)
        if found is None:
            return {}
        known = vars(found).copy()
        known["desired_position"] = known.pop("position")
        return known


def _labels(control: ControlLoop) -> Labels | None:
    controller = control.controller
    if not controller.reference_names:
        return None
    if controller.space == "operational":
        return operational_labels(controller.reference_names)
    return joint_labels(controller.model.dynamics.tree)
