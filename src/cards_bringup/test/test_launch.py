"""The launch files, run for real where ROS 2's launch system is installed."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip(
    "launch_ros.actions", reason="launch_ros is not installed (an installed ROS 2 has it)"
)
pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_bringup.demo.rod_demo import is_rod_robot  # noqa: E402 (after the skips)
from cards_bringup.gazebo.subreaper import adopt_orphans, descendants  # noqa: E402
from cards_bringup.nodes.launch_arguments import ARGUMENTS  # noqa: E402
from cards_bringup.nodes.plan import gazebo_problem, is_installed  # noqa: E402
from cards_bringup.nodes.ros_network import RosDomain  # noqa: E402
from cards_core.control import controller_kinds  # noqa: E402
from cards_core.shared_files import shared_folder  # noqa: E402


def robot_of(file):
    return file.name.removesuffix(".launch.py")


ANY = shared_folder() / "launch" / "robot.launch.py"
FILES = sorted(file for file in ANY.parent.glob("*.launch.py") if file != ANY)
RODS = [file for file in FILES if is_rod_robot(robot_of(file))]
MUSCLES = [file for file in FILES if file not in RODS]
ONE_ROBOT = [file for file in MUSCLES if file.name != "two_arms.launch.py"]
REAL = [
    file
    for file in MUSCLES
    if (shared_folder() / "config" / f"{robot_of(file)}.nodes.yaml").is_file()
]
ROBOTS = {"roboy_arm": 4, "planar_2r": 2}

needs_workspace = pytest.mark.skipif(
    shutil.which("ros2") is None
    or not any(
        Path(prefix, "lib", "cards_sim", "simulator").exists()
        for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    ),
    reason="the workspace is not built and sourced (colcon build; . install/setup.bash)",
)


def needs(simulator):
    """Skip where Gazebo is wanted and cannot be used, with the reason."""
    if simulator != "gazebo":
        return
    if not is_installed("cards_muscle_plugin"):
        pytest.skip("cards_muscle_plugin is not installed")
    if reason := gazebo_problem():
        pytest.skip(f"Gazebo: {reason}")


def include(file, **arguments):
    """Run a launch file up to the point where processes start; return the nodes it would start."""
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    from launch_ros.actions import Node

    context = LaunchContext()
    source = PythonLaunchDescriptionSource(str(file))
    description = IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))
    context.launch_configurations.update(arguments)
    nodes, declared = [], {}
    pending = list(description.visit(context))
    while pending:
        action = pending.pop(0)
        if isinstance(action, Node):
            nodes.append(action)
        elif isinstance(action, DeclareLaunchArgument):
            declared[action.name] = action
            action.visit(context)
        elif isinstance(action, OpaqueFunction) or hasattr(action, "entities"):
            pending = list(action.visit(context) or []) + pending
    return nodes, declared


def test_there_is_a_launch_file_for_each_robot():
    assert {robot_of(file) for file in FILES} >= set(ROBOTS)


@pytest.mark.parametrize("file", FILES, ids=robot_of)
def test_arguments_are_declared(file):
    if file in MUSCLES and file not in ONE_ROBOT:
        needs("gazebo")  # the only simulator for its robots
    _, declared = include(file)
    assert list(declared) == [argument.name for argument in ARGUMENTS]
    for argument in declared.values():
        assert argument.description


@pytest.mark.parametrize("file", ONE_ROBOT, ids=robot_of)
def test_nodes_of_a_headless_launch(file):
    nodes, _ = include(file, headless="true", rviz="false", simulator="mujoco")
    executables = [node.node_executable for node in nodes]
    assert executables[0] == "simulator"
    assert len(executables) == 2
    assert executables[1] in controller_kinds()


@pytest.mark.parametrize("file", RODS, ids=robot_of)
def test_nodes_of_a_robot_of_rods(file):
    nodes, _ = include(file, headless="true")
    assert [node.node_executable for node in nodes] == ["rod_solver"]
    nodes, _ = include(file, rviz="false", view="true")
    assert [node.node_executable for node in nodes] == ["rod_solver", "rod_view"]


@pytest.mark.parametrize("robot", ["planar_2r", "models/planar_3efr", "models/planar_xy"])
def test_launch_file_of_any_robot(robot, monkeypatch):
    monkeypatch.chdir(shared_folder())
    nodes, declared = include(ANY, robot=robot, headless="true", controller="")
    assert list(declared) == [argument.name for argument in ARGUMENTS]
    executables = [node.node_executable for node in nodes]
    assert executables in (["simulator", "ctc_joint"], ["rod_solver"])


def test_launch_file_of_any_robot_says_what_is_wrong():
    from cards_core.errors import CardsError

    with pytest.raises(CardsError, match="mode:=fast"):
        include(ANY, robot="planar_2r", mode="fast")
    with pytest.raises(CardsError, match="no_such_robot"):
        include(ANY, robot="no_such_robot")


@pytest.mark.parametrize("file", RODS, ids=robot_of)
def test_robots_of_rods_in_gazebo(file):
    needs("gazebo")
    nodes, _ = include(file, headless="true", simulator="gazebo")
    assert [node.node_executable for node in nodes] == ["gazebo_simulator"]


def test_view_and_no_controller():
    file = shared_folder() / "launch" / "roboy_arm.launch.py"
    arguments = {"rviz": "false", "view": "true", "controller": "none"}
    nodes, _ = include(file, simulator="mujoco", **arguments)
    assert [node.node_executable for node in nodes] == ["simulator", "browser_view"]


@pytest.mark.gazebo
def test_views_are_in_the_network_of_gazebo():
    needs("gazebo")
    file = shared_folder() / "launch" / "roboy_arm.launch.py"
    nodes, _ = include(file, rviz="false", simulator="gazebo")
    partitions = {}
    for node in nodes:
        variables = {
            "".join(part.text for part in name): "".join(part.text for part in value)
            for name, value in node.additional_env
        }
        partitions[node.node_executable] = variables["GZ_PARTITION"]
    assert {"gazebo_simulator", "gazebo_markers"} <= set(partitions)
    assert len(set(partitions.values())) == 1


@pytest.mark.skipif(is_installed("cards_hardware"), reason="cards_hardware is installed")
def test_hardware_without_its_package_says_so():
    from cards_core.errors import CardsError

    with pytest.raises(CardsError, match="cards_hardware, which is not installed"):
        include(shared_folder() / "launch" / "roboy_arm.launch.py", sim="false")


@pytest.mark.skipif(not is_installed("cards_hardware"), reason="cards_hardware is not installed")
@pytest.mark.parametrize("file", REAL, ids=robot_of)
def test_nodes_of_the_real_robot(file):
    nodes, _ = include(file, sim="false", headless="true", rviz="false")
    executables = [node.node_executable for node in nodes]
    hosts = executables.count("bridge")
    assert hosts == (1 if file in ONE_ROBOT else 2)
    assert len([name for name in executables if name in controller_kinds()]) == hosts
    assert len(executables) == 2 * hosts


@pytest.fixture
def domain(monkeypatch):
    """A ROS domain that nobody else uses."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("ROS_DOMAIN_ID", "80")
    with RosDomain() as mine:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(mine.number))
        yield mine.number


@pytest.mark.skipif(is_installed("ros2bag"), reason="ros2bag is installed")
def test_recording_without_ros2_bag_says_so():
    from cards_core.errors import CardsError

    with pytest.raises(CardsError, match="package ros2bag"):
        include(shared_folder() / "launch" / "roboy_arm.launch.py", record="true", rviz="false")


class Launch:
    """`ros2 launch` in a session of its own; what it leaves behind becomes a child of ours."""

    def __init__(self, folder, *arguments):
        adopt_orphans()
        self._before = set(descendants(os.getpid()))
        env = {**os.environ, "ROS_LOG_DIR": str(folder / "ros")}
        self.log = folder / "launch.log"
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                ["ros2", "launch", *arguments],
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def text(self):
        """All output so far."""
        return self.log.read_text()

    def left_behind(self):
        """Return the command lines of processes that outlive it, whatever their titles."""
        left = set(descendants(os.getpid())) - self._before
        numbers = ",".join(map(str, left))
        command = ["ps", "-o", "args=", "-p", numbers]
        return (
            subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
            if left
            else []
        )

    def interrupt(self):
        """Press Ctrl-C: the launch system has its nodes stop, and waits for them."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


@pytest.fixture
def listener(domain):
    """A node in the domain of the launch."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("launch_test", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    class Listener:
        def __init__(self):
            self.node = node

        def states(self, topic):
            from sensor_msgs.msg import JointState

            out = []
            node.create_subscription(JointState, topic, out.append, 1)
            return out

        def wait(self, condition, seconds, launch):
            end = time.monotonic() + seconds
            while not condition() and time.monotonic() < end:
                assert launch.process.poll() is None, launch.text
                executor.spin_once(timeout_sec=0.1)
            assert condition(), launch.text

    yield Listener()
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()


@needs_workspace
@pytest.mark.parametrize("robot", sorted(ROBOTS))
@pytest.mark.parametrize("simulator", ["mujoco", pytest.param("gazebo", marks=pytest.mark.gazebo)])
def test_robot_moves_and_stops_on_ctrl_c(robot, simulator, tmp_path, listener):
    from sensor_msgs.msg import JointState

    needs(simulator)
    states, commands = [], []
    listener.node.create_subscription(JointState, "joint_states", states.append, 1)
    listener.node.create_subscription(JointState, "force_command", commands.append, 1)
    with Launch(
        tmp_path,
        "cards_bringup",
        f"{robot}.launch.py",
        "headless:=true",
        "rviz:=false",
        f"simulator:={simulator}",
        f"log_dir:={tmp_path}",
    ) as launch:
        listener.wait(
            lambda: commands and states and states[-1].header.stamp.nanosec > 200_000_000,
            60,
            launch,
        )
        assert len(states[-1].name) == ROBOTS[robot]
        assert all(force > 0 for force in commands[-1].effort)
        assert launch.interrupt() == 0, launch.text
    text = launch.text
    assert "Traceback" not in text
    assert "process has died" not in text
    assert (tmp_path / "simulator.npz").is_file()
    assert (tmp_path / "controller.npz").is_file()
    assert launch.left_behind() == []


@needs_workspace
@pytest.mark.gazebo
@pytest.mark.parametrize(
    ("robot", "coordinates"),
    [("prism_3", 21), ("ipanema_1", 6), ("planar_3rfr", 3), ("spatial_3pfr", 3)],
)
def test_other_kinds_of_robots_in_gazebo(robot, coordinates, tmp_path, listener):
    needs("gazebo")
    states = listener.states("joint_states")
    with Launch(
        tmp_path, "cards_bringup", f"{robot}.launch.py", "headless:=true", "simulator:=gazebo",
        f"log_dir:={tmp_path}",
    ) as launch:  # fmt: skip
        listener.wait(
            lambda: states and states[-1].header.stamp.nanosec > 200_000_000, 120, launch
        )
        assert len(states[-1].name) == coordinates
        assert launch.interrupt() == 0, launch.text
    assert "Traceback" not in launch.text
    assert "process has died" not in launch.text
    assert launch.left_behind() == []
    host = "rod_solver" if f"{robot}.launch.py" in {file.name for file in RODS} else "simulator"
    assert (tmp_path / f"{host}.npz").is_file()


@needs_workspace
def test_robot_of_rods_goes_where_it_is_told_and_stops_on_ctrl_c(tmp_path, listener):
    from geometry_msgs.msg import PoseStamped

    states = listener.states("joint_states")
    poses = []
    listener.node.create_subscription(PoseStamped, "rod_solver/pose", poses.append, 1)
    target = listener.node.create_publisher(PoseStamped, "rod_solver/igm", 1)
    with Launch(
        tmp_path, "cards_bringup", "stewart_gough.launch.py", "headless:=true",
        f"log_dir:={tmp_path}",
    ) as launch:  # fmt: skip
        listener.wait(lambda: states and poses and target.get_subscription_count(), 60, launch)
        assert len(states[-1].name) == 6
        message = PoseStamped()
        message.header.frame_id = "world"
        message.pose = poses[-1].pose
        message.pose.position.x += 0.01
        target.publish(message)
        wanted = message.pose.position.x
        listener.wait(lambda: abs(poses[-1].pose.position.x - wanted) < 1e-6, 60, launch)
        assert launch.interrupt() == 0, launch.text
    assert "Traceback" not in launch.text
    assert "process has died" not in launch.text
    assert (tmp_path / "rod_solver.npz").is_file()


@needs_workspace
@pytest.mark.parametrize("simulator", ["mujoco", pytest.param("gazebo", marks=pytest.mark.gazebo)])
def test_two_arms_draw_in_one_world(tmp_path, listener, simulator):
    needs(simulator)
    states = {name: listener.states(f"{name}/joint_states") for name in ("left_arm", "right_arm")}
    commands = {name: listener.states(f"{name}/force_command") for name in states}
    with Launch(
        tmp_path,
        "cards_bringup",
        "two_arms.launch.py",
        "headless:=true",
        f"simulator:={simulator}",
    ) as launch:
        listener.wait(
            lambda: (
                all(commands.values())
                and all(
                    got and got[-1].header.stamp.nanosec > 200_000_000 for got in states.values()
                )
            ),
            60,
            launch,
        )
        assert launch.interrupt() == 0, launch.text
    assert "Traceback" not in launch.text
    assert launch.left_behind() == []


@needs_workspace
def test_launch_says_which_simulator_and_why(tmp_path, listener, monkeypatch):
    monkeypatch.setenv("PATH", without_gazebo())
    states = listener.states("joint_states")
    with Launch(
        tmp_path, "cards_bringup", "planar_2r.launch.py", "headless:=true", "rviz:=false"
    ) as launch:
        listener.wait(lambda: states, 60, launch)
        assert launch.interrupt() == 0, launch.text
    assert "simulator:=mujoco: gazebo cannot be used: gz is not installed" in launch.text


@needs_workspace
def test_gazebo_that_is_missing_is_told_with_the_fix(tmp_path, domain, monkeypatch):
    monkeypatch.setenv("PATH", without_gazebo())
    with Launch(tmp_path, "cards_bringup", "planar_2r.launch.py", "simulator:=gazebo") as launch:
        assert launch.process.wait(timeout=60) != 0
    assert "simulator:=gazebo cannot be used: gz is not installed" in launch.text
    assert "ros-jazzy-gz-sim-vendor >= 0.0.13" in launch.text


def without_gazebo():
    """Return PATH without the folders that hold ``gz``."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not Path(folder, "gz").exists())


@needs_workspace
def test_namespace_moves_the_robot(tmp_path, listener):
    from sensor_msgs.msg import JointState

    states = []
    listener.node.create_subscription(JointState, "left/joint_states", states.append, 1)
    with Launch(
        tmp_path,
        "cards_bringup",
        "planar_2r.launch.py",
        "headless:=true",
        "rviz:=false",
        "simulator:=mujoco",
        "namespace:=left",
        "controller:=none",
    ) as launch:
        listener.wait(lambda: states, 60, launch)
        # the parameter file was found: the arm is where it says, and stays without a controller
        assert list(states[-1].position) == [-0.5, 0.5]
        assert launch.interrupt() == 0, launch.text


@needs_workspace
def test_launch_fails_with_its_simulator(tmp_path, listener):
    from sensor_msgs.msg import JointState

    states = []
    listener.node.create_subscription(JointState, "joint_states", states.append, 1)
    with Launch(
        tmp_path,
        "cards_bringup",
        "planar_2r.launch.py",
        "headless:=true",
        "rviz:=false",
        "simulator:=mujoco",
    ) as launch:
        listener.wait(lambda: states, 60, launch)
        # the launch system prints each process it started with its number
        found = re.search(r"\[simulator-1\]: process started with pid \[(\d+)\]", launch.text)
        os.kill(int(found[1]), signal.SIGKILL)
        assert launch.process.wait(timeout=30) == 1
    assert "simulator-1 ended with exit code -9" in launch.text


@needs_workspace
@pytest.mark.skipif(not is_installed("cards_hardware"), reason="cards_hardware is not installed")
def test_the_real_robot_without_its_port_says_so_and_waits(tmp_path, listener):
    with Launch(
        tmp_path,
        "cards_bringup",
        "roboy_arm.launch.py",
        "sim:=false",
        f"port:={tmp_path}/no_port",
        "headless:=true",
        "rviz:=false",
    ) as launch:
        listener.wait(lambda: "no_port" in launch.text and "ready" in launch.text, 60, launch)
        assert launch.interrupt() == 0, launch.text
    assert "Traceback" not in launch.text
    assert "process has died" not in launch.text
