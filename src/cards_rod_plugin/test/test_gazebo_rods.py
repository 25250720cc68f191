"""The rods in real Gazebo, each world in a process of its own."""

import re

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from gazebo_run import GazeboRun, installation
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.rods.dynamics.plate_dynamics import PlateDynamics
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.spatial import quaternion_matrix, rotation_log
from cards_ros import topics
from cards_ros.diagnostics import Level

pytestmark = [pytest.mark.ros, pytest.mark.gazebo]

DGM = f"{topics.ROD_SOLVER}/dgm"
WATCH = """
    <plugin filename="gz-sim-python-system-loader-system"
            name="gz::sim::systems::PythonSystemLoader">
      <module_name>watch_plate</module_name>
    </plugin>
  </model>"""
PLACE = (1.0, -2.0, 0.5)  # of the second robot, [m]


@pytest.fixture(scope="module")
def gazebo():
    return installation()


class Watched:
    """A model that is written down by `watch_plate`, and an ``<include>`` of it."""

    def __init__(self, monkeypatch, folder, robot, *, push=""):
        self.robot = read_rod_robot(robot)
        (folder / "rods.yaml").write_text(open(self.robot.rods_source).read())  # noqa: SIM115
        text = open(self.robot.source).read()  # noqa: SIM115
        self.file = folder / "model.sdf"
        self.file.write_text(text.replace("</model>", WATCH))
        self.rows = folder / "watch.txt"
        monkeypatch.setenv("WATCH_FILE", str(self.rows))
        monkeypatch.setenv("WATCH_LINKS", self.robot.plate.link)
        monkeypatch.setenv("WATCH_PUSH", push)
        monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0], prepend=":")

    def include(self, name="", pose=""):
        own = f"<name>{name}</name>" if name else ""
        place = f"<pose>{pose}</pose>" if pose else ""
        return f"<include><uri>{self.file}</uri>{own}{place}</include>"

    def read(self):
        """Return times [ns], places (k, 3), orientations (k, 3, 3)."""
        rows = np.loadtxt(self.rows)
        turns = np.array([quaternion_matrix(row) for row in rows[:, 4:8]])
        return np.round(rows[:, 0] * 1e9).astype(int), rows[:, 1:4], turns


@pytest.fixture
def watched(monkeypatch, tmp_path):
    return lambda robot, **options: Watched(monkeypatch, tmp_path, robot, **options)


def test_the_plate_goes_where_the_solver_has_it(gazebo, domain, watched, tmp_path):
    """One solve per step of 1 ms, as fast as it goes; the base is elsewhere and turned."""
    model = watched("stewart_6efr")
    parameters = {"play": True, "motion_duration": 3.0, "duration": 3.0, "log_dir": tmp_path}
    include = model.include(pose="{} {} {} 0 0 0.7".format(*PLACE))
    with GazeboRun(gazebo, domain, include, **parameters) as run:
        assert run.wait() == 0
        print("plugin:", re.search(r"steps in .*", run.text())[0])
        assert "Traceback" not in run.text()
    with np.load(tmp_path / "rod_solver.npz") as log:
        times, poses = np.round(log["time"] * 1e9).astype(int), log["pose"].reshape(-1, 4, 4)
        assert not log["held"].any()
    seen, places, turns = model.read()
    common = np.intersect1d(times, seen)
    assert len(common) > 2900
    told, found = np.searchsorted(times, common), np.searchsorted(seen, common)
    turn = quaternion_matrix([np.cos(0.35), 0.0, 0.0, np.sin(0.35)])
    wanted = poses[told][:, :3, 3] @ turn.T + PLACE
    assert np.ptp(wanted, axis=0).min() > 0.03  # it does move
    away = np.abs(places[found] - wanted).max()
    swung = max(
        np.linalg.norm(rotation_log(turns[j].T @ turn @ poses[i][:3, :3]))
        for i, j in zip(told, found, strict=True)
    )
    print(f"plate in Gazebo against solver: {away:.1e} m, {swung:.1e} rad")
    assert away < 1e-5
    assert swung < 1e-5


def test_the_rods_hold_the_plate_and_a_push_makes_it_swing(gazebo, domain, watched):
    """Against the dynamics of the core, which knows nothing of Gazebo."""
    model = watched("stewart_6efr", push="plate 5 0.2 0.3")
    with GazeboRun(gazebo, domain, model.include(), coupling="dynamic", duration=1.5) as run:
        assert run.wait() == 0
        print("plugin:", re.search(r"steps in .*", run.text())[0])
    _, places, _ = model.read()
    reference = PlateDynamics(model.robot, solver := RodRobotSolver(model.robot))
    reference.start(solver.igm(model.robot.home_pose))
    wanted = []
    for step in range(1, len(places) + 1):
        force = 5.0 if 200 <= step < 300 else 0.0
        wanted.append(reference.step(1e-3, wrench=np.array([force, 0, 0, 0, 0, 0])).pose[:3, 3])
    still, swing = places[:199], np.array(wanted)
    assert np.abs(still - model.robot.home_pose[:3, 3]).max() < 1e-6
    assert np.ptp(swing[:, 0]) > 0.05
    error = np.abs(places - swing).max()
    print(f"pushed plate in Gazebo against PlateDynamics: {error:.1e} m of {np.ptp(swing[:, 0])}")
    # the push is an impulse at the end of each step there, spread over it here
    assert error < 0.01 * np.ptp(swing[:, 0])


def test_base_joints_and_planar_robots(gazebo, domain, watched, tmp_path):
    for robot in ("stewart_6pfs", "planar_3rfr"):
        model = watched(robot)
        folder = tmp_path / robot
        parameters = {"play": True, "motion_duration": 1.0, "duration": 1.0, "log_dir": folder}
        with GazeboRun(gazebo, domain, model.include(), **parameters) as run:
            assert run.wait() == 0, run.text()
            assert "Traceback" not in run.text()
        with np.load(folder / "rod_solver.npz") as log:
            times, poses = np.round(log["time"] * 1e9).astype(int), log["pose"]
        seen, places, _ = model.read()
        common = np.intersect1d(times, seen)
        wanted = poses[np.searchsorted(times, common)].reshape(-1, 4, 4)[:, :3, 3]
        assert len(common) > 900
        assert np.abs(places[np.searchsorted(seen, common)] - wanted).max() < 1e-4


def test_commands_reset_removal_and_return(gazebo, domain, probe, watched):
    model = watched("stewart_6efr")
    with GazeboRun(gazebo, domain, model.include(), factor=1.0) as run:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: len(states) > 2, "states")
        name, start = states[-1].name[0], states[-1].position[0]
        probe.publish(JointState(name=[name], position=[start + 0.03]), DGM)
        probe.until(lambda: abs(states[-1].position[0] - start - 0.03) < 1e-9, "arrival")
        # what makes no sense is refused, and the world goes on
        probe.publish(JointState(name=[name], position=[99.0]), DGM)
        probe.until_status("rod_solver: commands", Level.WARN, "limit")
        probe.publish(JointState(name=["nose"], position=[1.0]), DGM)
        probe.until_status("rod_solver: commands", Level.WARN, "nose")
        assert states[-1].position[0] == pytest.approx(start + 0.03)

        run.call("/world/test/control", "WorldControl", "reset: {all: true}")
        probe.until(lambda: abs(states[-1].position[0] - start) < 1e-9, "the start")
        assert probe.call(Trigger, f"{topics.ROD_SOLVER}/solve").success

        run.call("/world/test/remove", "Entity", f'name: "{model.robot.name}" type: MODEL')
        probe.until(lambda: topics.ROD_SOLVER not in probe.node.get_node_names(), "its end")
        probe.spin(0.3)
        probe.forget()
        run.call("/world/test/create", "EntityFactory", f'sdf_filename: "{model.file}"')
        probe.until(lambda: states, "states of the new one")
        assert states[-1].position[0] == pytest.approx(start)
        assert run.alive
        assert "Traceback" not in run.text()


def test_a_model_spawned_from_text_is_answered(gazebo, domain, probe, watched):
    model = watched("stewart_gough")
    with GazeboRun(gazebo, domain, "", factor=1.0) as run:
        text = model.file.read_text().replace('"', '\\"').replace("\n", " ")
        text = re.sub("<!--.*?-->", "", text)
        run.call("/world/test/create", "EntityFactory", f'sdf: "{text}"')
        status = probe.until_status("stewart_gough/rod_solver: world", Level.ERROR)
        assert "spawned from its file" in status.message
        assert run.alive
