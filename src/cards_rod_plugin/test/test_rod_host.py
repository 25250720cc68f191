"""The plate in the world: put where the rods are in equilibrium, or pulled by them."""

import numpy as np
import pytest
from fake_world import FakeWorld

from cards_core.errors import CardsError, DescriptionError, RodError, UnknownNameError
from cards_core.rods.dynamics.plate_dynamics import PlateDynamics
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.spatial import axis_rotation
from cards_rod_plugin.hosted_rods import host_rods
from cards_rod_plugin.plate_coupling import CoupledRodSimulation
from cards_rod_plugin.rod_host import HostOptions, RodHost


def hosted(world, **options):
    found = host_rods(world, "")
    simulation = CoupledRodSimulation(found.robot, substeps=1)
    host = RodHost(found, simulation, world, HostOptions(**options))
    host.start()
    return host


def placed():
    """A base that is elsewhere, turned, and leans over."""
    base = np.eye(4)
    turn = axis_rotation((0.0, 0.0, 1.0), 0.7) @ axis_rotation((1.0, 0.0, 0.0), 0.05)
    base[:3, :3], base[:3, 3] = turn, (1.0, -2.0, 0.5)
    return base


def test_the_plate_is_where_the_rods_are_in_equilibrium_in_the_axes_of_the_world():
    world = FakeWorld("stewart_6efr", base=placed())
    host = hosted(world)
    start, turn = host.simulation.reference, placed()[:3, :3]
    wrenches = np.concatenate([start.base_wrenches[:, k : k + 3] @ turn.T for k in (0, 3)], axis=1)
    q = start.q + 0.02 * np.cos(np.arange(6))
    assert host.simulation.command_joints((), q)
    world.run(host, 40)
    assert host.simulation.reference.q == pytest.approx(q, abs=1e-12)
    # the same robot, placed and weighed by the solver itself
    solver = RodRobotSolver(world.robot, base=placed(), gravity=world.world_gravity)
    expected = solver.dgm(q, start=InitialGuess(start.q, placed() @ start.pose, wrenches))
    assert expected.converged
    assert world.pose == pytest.approx(expected.pose, abs=10 * world.robot.settings.tolerance)
    assert host.lag < 1e-9


def test_what_holds_the_plate_up_is_noticed():
    world = FakeWorld("stewart_gough")
    host = hosted(world)
    world.run(host, 3)
    world.pose[0, 3] += 0.02  # as if it hung on something
    host.step(0.0, 1e-3)
    assert host.lag == pytest.approx(0.02, rel=1e-3)


def test_base_joints_and_bodies_of_the_plate_follow():
    world = FakeWorld("stewart_6pfs")
    host = hosted(world)
    q = host.simulation.reference.q + 0.01
    host.simulation.command_joints((), q)
    world.run(host, 20)
    names = host.hosted.robot.joint_names
    assert [world.joints[name] for name in names] == pytest.approx(q)
    solution = host.simulation.result.solution
    lines = host.simulation.tracker.solver.shapes(solution, 51).positions
    host.draw(lines)
    # the ball turns its rod's end to where the rod's tangent points
    limb = host.hosted.robot.limbs[0]
    vector = world.joints[limb.tip.joint]
    turn = axis_rotation(vector / np.linalg.norm(vector), float(np.linalg.norm(vector)))
    tangent = 3 * lines[0, -1] - 4 * lines[0, -2] + lines[0, -3]
    axis = solution.pose[:3, :3] @ limb.tip.joint_pose[:3, :3] @ turn @ limb.tip.attach[:3, 2]
    assert axis == pytest.approx(tangent / np.linalg.norm(tangent), abs=1e-9)


def test_a_plate_on_its_rods_stays_at_rest():
    world = FakeWorld("stewart_6efr", base=placed())
    host = hosted(world)
    world.pose = world.base @ host.simulation.reference.pose
    dynamic = hosted(world, coupling="dynamic")
    start = world.pose.copy()
    world.run(dynamic, 200)
    assert world.pose == pytest.approx(start, abs=1e-7)
    assert np.abs(world.twist).max() < 1e-6


def test_a_pushed_plate_swings_as_the_plate_on_rods_does():
    """Two integrators, one here and one of the core; the difference falls with the step."""
    reference = PlateDynamics((robot := FakeWorld("stewart_6efr").robot), RodRobotSolver(robot))
    reference.theta = 0.5
    push, time = np.array([2.0, 1.0, -1.0, 0.1, 0.0, 0.3]), 0.3
    reference.start(RodRobotSolver(robot).igm(robot.home_pose))
    for _ in range(400):
        end = reference.step(time / 400, wrench=push)
    errors = []
    for dt in (2e-3, 1e-3):
        world = FakeWorld("stewart_6efr")
        host = hosted(world, coupling="dynamic", theta=0.5)
        world.push = push
        world.run(host, round(time / dt), dt)
        errors.append(np.abs(world.pose - end.pose).max())
    assert np.abs(end.pose[:3, 3] - robot.home_pose[:3, 3]).max() > 0.02
    assert errors[1] < 1e-3
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.2)


def explicit(rods):
    """Return what pulls with the wrench that the rods have at the step's beginning."""
    step = rods.step

    def wrench(dt, q, load):
        out = rods._solution.plate_wrench.copy()
        found = step(dt, q, load)
        rods._wanted = None
        return out, found

    return wrench


def test_stiff_rods_do_not_blow_up_where_their_wrench_alone_does(monkeypatch):
    """400 Hz and more on a light plate, steps of 1 ms: energy may only go away."""
    speeds = {}
    for implicit in (True, False):
        world = FakeWorld("stewart_gough")
        host = hosted(world, coupling="dynamic")
        if not implicit:
            monkeypatch.setattr(host._coupling, "wrench", explicit(host._coupling))
        world.twist = np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0])
        try:
            world.run(host, 400)
            speeds[implicit] = np.linalg.norm(world.twist[:3])
        except (CardsError, np.linalg.LinAlgError, FloatingPointError):
            speeds[implicit] = np.inf
    assert speeds[True] < 0.05
    assert speeds[False] > 1.0


def test_commands_move_the_joints_at_their_speed_and_loads_act():
    world = FakeWorld("stewart_6efr")
    host = hosted(world, coupling="dynamic", joint_speed=0.4)
    q = host.q + 0.05
    host.simulation.command_joints((), q)
    world.run(host, 50)
    # 0.4 mm in each step
    assert host.q == pytest.approx(q - 0.03, abs=1e-9)
    assert host.simulation.result.solution.q == pytest.approx(q - 0.03, abs=5e-4)
    world.run(host, 80)
    assert host.q == pytest.approx(q)
    host.simulation.set_wrench([3.0, 0, 0, 0, 0, 0])
    before = world.pose[0, 3]
    world.run(host, 200)
    assert world.pose[0, 3] - before > 0.01
    assert host.simulation.result.solution.pose == pytest.approx(world.pose, abs=5e-3)


def test_joints_that_the_world_moves_are_read():
    world = FakeWorld("stewart_6pfs")
    host = hosted(world, coupling="dynamic", base_joints="world")
    start = host.q.copy()
    for name, value in zip(host.hosted.robot.joint_names, start, strict=True):
        world.joints[name] = value
    world.run(host, 5)
    for name in host.hosted.robot.joint_names:
        world.joints[name] += 0.005
    world.run(host, 100)
    assert host.simulation.result.solution.q == pytest.approx(start + 0.005)
    assert world.pose[2, 3] > world.robot.plate.pose[2, 3]
    with pytest.raises(CardsError, match="change their lengths"):
        hosted(FakeWorld("stewart_6efr"), base_joints="world")


def test_a_plate_that_the_rods_cannot_follow_is_told_and_a_start_begins_anew():
    world = FakeWorld("stewart_6efr")
    host = hosted(world, coupling="dynamic")
    world.run(host, 3)
    world.pose[:3, 3] += 5.0
    with pytest.raises(RodError, match="do not follow the plate"):
        world.run(host, 1)
    world.home()
    host.simulation.home()
    host.start()
    world.run(host, 5)
    assert world.pose == pytest.approx(world.robot.plate.pose, abs=1e-6)
    world.twist[0] = np.nan
    with pytest.raises(CardsError, match="diverged"):
        world.run(host, 1)


def test_a_simulator_that_does_not_know_yet_is_waited_for():
    world = FakeWorld("stewart_gough")
    host = hosted(world)
    world.known = False
    host.step(0.0, 1e-3)
    assert world.moves == 0


def test_planar_robots_are_put_and_not_pulled():
    world = FakeWorld("planar_3rfr")
    host = hosted(world)
    world.run(host, 5)
    assert world.pose == pytest.approx(host.simulation.reference.pose, abs=1e-9)
    with pytest.raises(RodError, match="planar"):
        hosted(world, coupling="dynamic")


# Which robot it is -----------------------------------------------------------------------------


def test_gravity_is_the_world_s_unless_the_rods_have_their_own():
    moon = FakeWorld("stewart_gough", base=placed(), gravity=(0.0, 0.0, -1.62))
    found = host_rods(moon, "")
    assert placed()[:3, :3] @ found.robot.gravity == pytest.approx([0.0, 0.0, -1.62])
    assert found.notes == ()
    found = host_rods(FakeWorld("stewart_gough_till"), "")
    assert found.robot.gravity == pytest.approx([0.0, 0.0, 0.0])
    assert "whatever the world has" in found.notes[0]


def test_the_namespace_is_the_name_in_the_world():
    assert host_rods(FakeWorld("stewart_gough"), "").namespace == ""
    assert host_rods(FakeWorld("stewart_gough", path=("left",)), "").namespace == "left"


@pytest.mark.parametrize(
    ("change", "block", "error", "words"),
    [
        (("file", None), "", DescriptionError, "included or spawned from its file"),
        (("path", ("cell", "robot")), "", DescriptionError, "nested"),
        (("static", True), "", DescriptionError, "static"),
        (None, "<plugin><rods>others.yaml</rods></plugin>", DescriptionError, "others.yaml"),
        (("link_names", lambda: ["base"]), "", UnknownNameError, "plate"),
    ],
    ids=["text", "nested", "static", "other rods", "missing link"],
)
def test_models_that_cannot_be_hosted(change, block, error, words):
    world = FakeWorld("stewart_gough")
    if change is not None:
        setattr(world, *change)
    with pytest.raises(error, match=words):
        host_rods(world, block)


def test_a_robot_that_stands_on_nothing(tmp_path):
    world = FakeWorld("stewart_gough")
    text = world.file.read_text()
    begin, end = text.index('<joint name="base_to_world"'), text.index("</joint>") + 8
    (tmp_path / "model.sdf").write_text(text[:begin] + text[end:])
    (tmp_path / "rods.yaml").write_text((world.file.parent / "rods.yaml").read_text())
    world.file = tmp_path / "model.sdf"
    with pytest.raises(DescriptionError):
        host_rods(world, "")
