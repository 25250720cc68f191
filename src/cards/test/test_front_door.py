"""The script of the README, and what the front door promises for every shipped robot."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cards
from cards_bringup.nodes import node_list
from cards_bringup.nodes.in_process import InProcessRun
from cards_bringup.nodes.plan import make_plan
from cards_core.errors import CardsError, UnknownNameError
from cards_core.loop.control_setup import run_parameters
from cards_core.loop.run_log import SIMULATOR_LOG
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Tree
from cards_core.shared_files import find_file
from cards_viz.runs.log import SimulatorLog
from cards_viz.runs.summary import trajectory_sha256

DURATION = 0.1
REFERENCE = run_parameters()
IDEAL = Cable()


def listed_pairs():
    """Return robot and controller of every pair that `./cards demo` can run."""
    out = []
    for name in cards.known_models(rods=False):
        kinds = cards.controllers(cards.load(name))
        try:
            file = find_file(name, folder="config", suffix=node_list.SUFFIX)
        except UnknownNameError:
            pass  # the standard list has all that suit
        else:
            known = node_list.read_file(file).controllers
            kinds = [kind for kind in kinds if kind in known]
        out += [(name, kind) for kind in kinds]
    return out


def settings(kind):
    return {
        "simulator": "mujoco",
        "mode": "lockstep",
        "rviz": "false",
        "view": "false",
        "controller": kind,
    }


PAIRS = listed_pairs()


def test_the_robots_with_node_lists_are_there():
    assert set(PAIRS) >= {
        ("roboy_arm", "ctc_operational"),
        ("planar_2r", "ctc_joint"),
        ("wrap_elbow", "ctc_joint"),
        ("ipanema_1", "ctc_operational"),
    }


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_plain_python_moves_as_the_demo_does(name, kind, tmp_path):
    plan = make_plan(settings(kind), name)
    logs = {"log_dir": str(tmp_path)}
    demo = InProcessRun(plan, {"simulator": logs}, DURATION, tmp_path)
    reference = demo.parameters(kind)
    reference.declare([parameter for parameter in REFERENCE if parameter.name == "reference"])
    demo.run(lambda _: None)
    expected = trajectory_sha256(SimulatorLog.load(tmp_path / SIMULATOR_LOG).q)

    robot = cards.load(name)
    given = {node.name: plan.given(node.full_name) for node in plan.nodes}
    # robots without a node list start where their reference does
    start = given["simulator"].get("initial_positions")
    placed = {"terrain": plan.values["terrain"] or None, "q": start}
    chosen = {"reference": reference["reference"] or None}
    chosen |= {key: given[kind][key] for key in ("backend",) if key in given[kind]}
    sim = cards.Simulator(robot, **placed)
    controller = cards.Controller(kind, robot, **chosen)
    run = cards.simulate(sim, controller, duration=DURATION)
    assert trajectory_sha256(run.q) == expected

    again = cards.Simulator(robot, **placed)
    controller = cards.Controller(kind, robot, **chosen)
    for _ in range(len(run)):
        again.submit(controller.step(again.state))
        again.step()
    np.testing.assert_array_equal(again.state.q, run.q[-1])


def test_the_script_needs_no_ros(tmp_path):
    script = """
import sys
for name in ("rclpy", "launch", "gz"):
    sys.modules[name] = None
import cards

robot = cards.load("planar_2r")
model = cards.compile(robot)
state = model(q=robot.home)
sim = cards.Simulator(robot)
controller = cards.Controller("ctc_joint", robot, reference="there_and_back")
run = cards.simulate(sim, controller, duration=0.2)
run.plot()
run.save("run")
view = cards.show(run, port=0, block=False)
view.close()
print(state.M.shape, state.L.shape, len(run))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "(2, 2) (4, 2) 200"
    assert (tmp_path / "run" / "summary.json").is_file()


def test_a_ligament_is_counted_without_the_user_knowing_of_it():
    """Planned tension is applied tension, and the ligament is in the equation of motion."""
    described = cards.load("wrap_elbow")
    # ideal cables, so that what is applied is what was planned at the same state
    muscles = tuple(
        dataclasses.replace(m, actuator=IDEAL) if m.takes_tension else m for m in described.muscles
    )
    assert sum(not m.takes_tension for m in muscles) == 1
    robot = dataclasses.replace(described, muscles=muscles)
    sim = cards.Simulator(robot)
    controller = cards.Controller("ctc_joint", robot, reference="bend", kp=[800.0], kd=[50.0])
    model = cards.compile(robot)
    names = [muscle.name for muscle in robot.muscles]
    for _ in range(200):
        command = controller.step(sim.state)
        before = sim.state
        sim.submit(command)
        sim.step()
        (part,) = command
        applied = sim.state.tensions
        planned = [applied[names.index(name)] for name in part.names]
        np.testing.assert_allclose(part.values, planned, rtol=0, atol=1e-9)
        # the planned acceleration is the one of all muscles, passive ones included
        state = model(q=before.q, qd=before.qd)
        made = np.linalg.solve(state.M, -state.L.T @ applied - state.C - state.G)
        wanted = controller.controller.output.acceleration
        np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-9)
    assert controller.controller.output.status.name == "OK"


def test_rods_have_the_same_names(tmp_path):
    robot = cards.load("stewart_gough")
    model = cards.compile(robot)
    state = model(q=robot.home)
    np.testing.assert_allclose(state.pose, model(pose=state.pose).pose, atol=1e-6)
    np.testing.assert_allclose(state.K, state.K.T, rtol=1e-6, atol=1e-6 * np.abs(state.K).max())
    sim = cards.Simulator(robot)
    run = cards.simulate(sim, duration=0.5)
    assert len(run) == 51
    run.plot("joints")
    assert run.save(tmp_path / "run")["verdict"] == "ok"
    with pytest.raises(AttributeError, match=r"has no 'M' \(it has q, pose, K"):
        _ = state.M
    with pytest.raises(CardsError, match="robot of rods, which has no controllers"):
        cards.Controller("ctc_joint", robot)


def test_a_second_run_goes_on():
    robot = cards.load("planar_2r")
    sim = cards.Simulator(robot)
    first = cards.simulate(sim, duration=0.05)
    second = cards.simulate(sim, duration=0.05)
    assert first.time[-1] == 0.05
    assert second.time[0] > first.time[-1]
    assert second.time[-1] == 0.1
    whole = cards.simulate(cards.Simulator(robot), duration=0.1)
    np.testing.assert_array_equal(np.vstack([first.q, second.q]), whole.q)


def test_coordinates_by_name_and_in_order():
    robot = cards.load("planar_2r")
    model = cards.compile(robot)
    both = model(q=[0.3, -0.2])
    np.testing.assert_array_equal(model(q={"joint_1": 0.3, "joint_2": -0.2}).l, both.l)
    with pytest.raises(UnknownNameError, match=r"joint_3.*joint_1, joint_2"):
        model(q={"joint_3": 0.0})
    with pytest.raises(CardsError, match="joint 'joint_1' has 1 coordinates, 2 given"):
        model(q={"joint_1": [0.0, 1.0]})
    with pytest.raises(UnknownNameError, match="quantity of state of planar_2r"):
        _ = both["mass"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: cards.load("roboy"), "did you mean 'roboy_arm'"),
        (lambda r: cards.load("<sdf"), "<string>"),
        (lambda r: cards.Controller("ctc", r), "ctc_joint"),
        (lambda r: cards.Controller("ctc_joint", r, reference="flower"), "there_and_back"),
        (lambda r: cards.Controller("ctc_joint", r, kpp=3.0), "kp"),
        (lambda r: cards.Controller("ctc_joint", r, kp=[1.0, 2.0, 3.0]), "joint_1, joint_2"),
        (lambda r: cards.Simulator(r, speed=2.0), "command_timeout"),
        (lambda r: cards.Simulator(r, dt=-1.0), "dt"),
        (lambda r: cards.simulate(cards.Simulator(r), duration=-1.0), "0 < duration"),
        (lambda r: cards.simulate(cards.Simulator(r), duration=float("nan")), "0 < duration"),
        (
            lambda r: cards.simulate(
                cards.Simulator(r), cards.Controller("ctc_joint", cards.load("bm_arm")),
                duration=1.0,
            ),
            "different models",
        ),
        (lambda r: cards.show("planar_2r"), "expected: a robot or a run"),
        (lambda r: cards.simulate(cards.Simulator(r), duration=0.01)["p"], "array of a run"),
        (lambda r: cards.simulate(cards.Simulator(r), duration=0.01).plot("x"), "tensions"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_what_would_be_right(call, words):
    with pytest.raises(CardsError, match=words):
        call(cards.load("planar_2r"))


def test_what_there_is():
    assert set(cards.__all__) <= set(dir(cards))
    with pytest.raises(AttributeError, match="has no attribute 'simulator'"):
        _ = cards.simulator


def test_a_tensegrity_from_its_page_of_yaml_moves(tmp_path):
    from cards_core.formats.locate import find_model

    structure = cards.tensegrity.build(find_model("prism_3").parent / "structure.yaml")
    file = cards.tensegrity.write_structure(structure, tmp_path)
    built, loaded = cards.tensegrity.to_robot(structure), cards.load(file)
    states = []
    for robot in (built, loaded):
        sim = cards.Simulator(robot, ground=0.0)
        for _ in range(50):
            sim.step()
        states.append(sim.state)
    np.testing.assert_allclose(states[0].q, states[1].q, atol=1e-9)
    assert states[0].tensions.min() > 1.0


def readme_script():
    """Return the script of the README. In an installation there is no README."""
    readme = Path(__file__).parents[3] / "README.md"
    if not readme.is_file():
        pytest.skip("no README.md beside the sources")
    (script,) = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    return script


@pytest.mark.parametrize("robot", ["roboy_arm", "stewart_gough"])
def test_the_script_of_the_readme_runs(robot, tmp_path):
    script = readme_script().replace("duration=5.0", "duration=0.5")
    if robot == "stewart_gough":
        script = script.replace("roboy_arm", robot).replace("(sim, controller, ", "(sim, ")
        script = re.sub(r"^controller = .*\n", "", script, flags=re.MULTILINE)
    blocked = "import sys\nsys.modules['rclpy'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + script + "\nprint(len(run))"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == {"roboy_arm": "500\n", "stewart_gough": "51\n"}[robot]


@pytest.mark.parametrize("name", ["roboy_arm", "wrap_elbow"])
def test_a_tree_is_made_once_for_each_robot(name, monkeypatch):
    made = []
    original = Tree.__init__

    def counted(tree, robot):
        made.append(robot)
        original(tree, robot)

    monkeypatch.setattr(Tree, "__init__", counted)
    robot = cards.load(name)
    sim = cards.Simulator(robot)
    controller = cards.Controller(cards.controllers(robot)[0], robot)
    cards.simulate(sim, controller, duration=0.01)
    assert robot in made
    assert len({id(one) for one in made}) == len(made)
    # with a ligament: all muscles, those that are commanded, those that are a load
    passive = any(not muscle.takes_tension for muscle in robot.muscles)
    assert len(made) == (3 if passive else 1)


@pytest.mark.parametrize("name", ["roboy_arm", "wrap_elbow"])
def test_lengths_are_computed_once_in_a_step(name):
    robot = cards.load(name)
    sim = cards.Simulator(robot)
    controller = cards.Controller(cards.controllers(robot)[0], robot)
    engine = sim.simulator.muscles.engine
    calls = []
    original = engine.motion
    engine.motion = lambda *of: calls.append(None) or original(*of)
    run = cards.simulate(sim, controller, duration=0.05)
    assert len(calls) == len(run) == 50


def test_a_robot_among_objects():
    robot = cards.load("roboy_arm")
    sim = cards.Simulator(robot, world="table")
    cards.simulate(sim, duration=0.02)
    world = sim.simulator.world
    assert world.contact_force("box")[2] > 0.0
    world.grasp("roboy_arm::lower_arm", "box")
    assert world.grasped == (("roboy_arm::lower_arm", "box::link"),)
    with pytest.raises(CardsError, match="robots of its own"):
        cards.Simulator(robot, world="two_arms")


def test_two_robots_in_one_world_with_a_controller_each():
    world, robot = cards.World("two_arms"), cards.load("roboy_arm")

    def controllers():
        return {
            name: cards.Controller("ctc_operational", robot, reference="flower")
            for name in world.robots
        }

    runs = cards.simulate(world, controllers(), duration=0.3)
    assert list(runs) == ["left_arm", "right_arm"]
    alone = cards.simulate(
        cards.Simulator(robot, command_timeout=0.1),
        cards.Controller("ctc_operational", robot, reference="flower"),
        duration=0.3,
    )
    for run in runs.values():
        assert len(run) == 300
        np.testing.assert_allclose(run.q, alone.q, atol=1e-6)
    # in lockstep, so it repeats to the last bit
    world.reset()
    again = cards.simulate(world, controllers(), duration=0.3)
    for name, run in runs.items():
        assert again[name].q.tobytes() == run.q.tobytes()
    with pytest.raises(CardsError, match="left_arm"):
        cards.simulate(world, controllers()["left_arm"], duration=0.1)
    with pytest.raises(CardsError, match="left_arm"):
        cards.simulate(world, {"arm": controllers()["left_arm"]}, duration=0.1)


def test_a_urdf_is_a_robot(tmp_path, caplog):
    folder = Path(__file__).resolve().parents[3] / "examples" / "urdf_arm"
    text = (folder / "arm.urdf").read_text()
    for source in (folder / "arm.urdf", str(folder / "arm.urdf"), text):
        robot = cards.load(source)
        assert (robot.name, robot.tree.nv, len(robot.muscles)) == ("urdf_arm", 2, 0)
    assert not caplog.records
    # a moving link without mass, which a simulator would refuse, gets a little
    bare = text.replace(
        '<joint name="hand_mount" type="fixed">', '<joint name="m" type="continuous">'
    )
    robot = cards.load(bare)
    assert robot.link("hand").inertia.mass > 0.0
    assert "./cards import urdf" in caplog.text
    with pytest.raises(CardsError, match="which holds one"):
        cards.load(text, model="arm")
    with pytest.raises(CardsError, match="no such file"):
        cards.load(tmp_path / "none.urdf")
