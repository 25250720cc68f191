"""Without ROS, too, controller and simulator must have one model."""

import json

import numpy as np
import pytest

from cards_core.control.model import PassiveLoad
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.closed_loop import check_models
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.state import RobotState
from cards_sim.build import build_host
from cards_viz.runs.summary import trajectory_sha256
from changed_robots import with_limits, with_mass

ROBOT = load("planar_2r")


def session(robot, **parameters):
    return make_control_loop(
        "ctc_joint", ParameterSet({"backend": "numeric", **parameters}), robot
    )


@pytest.mark.parametrize("parameters", [{}, {"mass_factor": 1.3, "attachment_offset": 0.01}])
def test_the_same_model_is_none_too_many(parameters):
    check_models(session(ROBOT, **parameters), build_host(ParameterSet({}), ROBOT))


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (with_mass(ROBOT, 2.0), r"equations \(masses.*accept_other_model"),
        (with_limits(ROBOT, -1.0, 1.0), r"joint limits: joint_2 -1.0 .. 1.0 here, .* there"),
    ],
)
def test_other_models_are_refused_with_what_differs(robot, words):
    with pytest.raises(CardsError, match=words):
        check_models(session(robot), build_host(ParameterSet({}), ROBOT))


def test_parameters_of_the_file_that_no_node_has_are_refused(tmp_path):
    from cards_bringup.nodes.in_process import InProcessRun
    from cards_bringup.nodes.plan import make_plan

    file = tmp_path / "p.yaml"

    def run(text):
        file.write_text(f"/**: {{ros__parameters: {{model: planar_2r, other: 1}}}}\n{text}\n")
        plan = make_plan({"params_file": str(file), "simulator": "mujoco"}, "planar_2r")
        InProcessRun(plan, {}, 0.01, tmp_path).run(lambda time: None)

    run("simulator: {ros__parameters: {world: empty}}")
    with pytest.raises(CardsError, match=r"p\.yaml:3: node 'ctc_joint'.*did you mean 'kp'"):
        run("ctc_joint:\n  ros__parameters: {kpp: [1.0, 1.0]}")
    with pytest.raises(CardsError, match=r"p\.yaml:2: node 'simulator'.*did you mean 'ground'"):
        run("simulator: {ros__parameters: {groundd: true}}")


class SlowMachine:
    """A clock that goes on by itself whenever it is asked, so that every step is late."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def perf_counter(self):
        self.now += self.tick
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("mode", "tick", "verdict"),
    [
        (None, 0.001, "ok"),  # paced
        ("realtime", 0.001, "failed"),
        (None, 1e-5, "ok"),
        ("realtime", 1e-5, "ok"),
    ],
)
def test_machines_that_are_too_slow_or_not(monkeypatch, tmp_path, capsys, mode, tick, verdict):  # noqa: PLR0917
    """What was computed is right all the same; only in real time that is not what was wanted."""
    from cards_bringup.cli import main
    from cards_core.loop import closed_loop

    monkeypatch.setattr(closed_loop, "time", SlowMachine(tick))
    out = tmp_path / "run"
    arguments = ["demo", "planar_2r", "--headless", "--no-ros", "--duration", "1", "--json"]
    options = [] if mode is None else ["--mode", mode]
    code = main([*arguments, "--out", str(out), *options])
    summary = json.loads(capsys.readouterr().out)
    assert summary["mode"] == (mode or "paced")
    assert (summary["verdict"], code) == (verdict, 1 if verdict == "failed" else 0)
    assert summary["missed_deadlines"] == (999 if verdict == "failed" else 0)
    told = [*summary["failures"], *summary["warnings"]]
    assert any("slower than real time" in text for text in told) == (tick == 0.001)
    assert any("missed deadlines: " in text for text in told) == (verdict == "failed")
    # and these numbers are the same in every mode, to the last bit
    assert summary["trajectory_sha256"] == lockstep(tmp_path / "lockstep")


def test_what_cannot_be_done_is_told_before_the_run(tmp_path, capsys):
    from cards_bringup.cli import main

    far = tmp_path / "far.yaml"
    far.write_text(
        "trajectories:\n"
        "  far: {kind: quintic, space: joint, time_definition: relative, points: "
        "[{position: [-0.5, 0.5]}, {time: 2, position: [3.5, -0.5]}]}\n"
    )
    file = tmp_path / "p.yaml"
    file.write_text(
        "/**: {ros__parameters: {model: planar_2r}}\n"
        f"ctc_joint: {{ros__parameters: {{reference: far, reference_file: {far}}}}}\n"
    )
    out = tmp_path / "run"
    arguments = ["demo", "planar_2r", "--headless", "--no-ros", "--mode", "lockstep"]
    assert main([*arguments, "--params-file", str(file), "--out", str(out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    told = [i for i, line in enumerate(lines) if line.startswith("warning: reference: ")]
    assert "beyond the upper limit 3.1416 (feasible: -3.142 to 3.142)" in lines[told[0]]
    assert "no tensions within their limits do what is asked at t = " in lines[told[1]]
    assert told[1] < lines.index("plots and recording ...")
    warnings = json.loads((out / "summary.json").read_text())["warnings"]
    assert warnings[:2] == [lines[i].removeprefix("warning: ") for i in told]


def lockstep(folder):
    from cards_bringup.nodes.in_process import InProcessRun
    from cards_bringup.nodes.plan import make_plan

    plan = make_plan({"simulator": "mujoco", "mode": "lockstep"}, "planar_2r")
    InProcessRun(plan, {"simulator": {"log_dir": str(folder)}}, 1.0, folder).run(lambda _: None)
    with np.load(folder / "simulator.npz") as log:
        return trajectory_sha256(log["q"])


def test_ligaments_are_part_of_the_model_that_is_compared():
    robot = load("wrap_elbow")
    built = session(robot)
    assert len(built.controller.dynamics.robot.muscles) < len(robot.muscles)
    check_models(built, build_host(ParameterSet({}), robot))


def test_controllers_of_nodes_count_the_tension_of_ligaments():
    # the capsule is taut near full extension; at rest there its moment adds to the weight
    built = session(load("wrap_elbow"), reference="")
    controller = built.controller
    q, still = np.array([0.05]), np.zeros(1)
    built.step(RobotState(0.0, q, still))
    out = controller.output
    state = controller.dynamics.update(q, still)
    made = -state.muscle_jacobian.T @ out.tensions - state.gravity - state.coriolis
    capsule = PassiveLoad(load("wrap_elbow"), "numeric")(q, still)
    assert abs(capsule[0]) > 0.01
    np.testing.assert_allclose(made, capsule, rtol=1e-6)
