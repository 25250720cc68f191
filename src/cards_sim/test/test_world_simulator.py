"""Worlds of several models in MuJoCo: contact forces, momentum, constraints, grasps, energy."""

import itertools
import struct

import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world, read_world
from cards_core.muscles.command import KINDS
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_core.robot.world import ModelJoint, World, WorldModel
from cards_core.spatial import Pose
from cards_sim.errors import SimulationStoppedError
from cards_sim.simulator import Simulator, robots_within
from cards_sim.world_simulator import WorldSimulator, _Met

FLOOR = (
    '<model name="floor"><static>true</static><link name="link"><collision name="c"><geometry>'
    "<plane><normal>0 0 1</normal><size>10 10</size></plane></geometry></collision></link></model>"
)
WEIGHTLESS = "<gravity>0 0 0</gravity>"
SHAPES = {
    "box": "<box><size>0.2 0.2 0.2</size></box>",
    "sphere": "<sphere><radius>0.1</radius></sphere>",
    "cylinder": "<cylinder><radius>0.1</radius><length>0.2</length></cylinder>",
    "capsule": "<capsule><radius>0.1</radius><length>0.2</length></capsule>",
    "ellipsoid": "<ellipsoid><radii>0.1 0.1 0.1</radii></ellipsoid>",
}


def world(content, settings="<gravity>0 0 -9.81</gravity>"):
    return read_world(f'<sdf version="1.11"><world name="w">{settings}{content}</world></sdf>')


def body(name, pose="0 0 0.1 0 0 0", shape=SHAPES["box"], mass=2.0, moment=0.02):
    tensor = "".join(f"<{key}>{moment}</{key}>" for key in ("ixx", "iyy", "izz"))
    collision = f'<collision name="c"><geometry>{shape}</geometry></collision>' if shape else ""
    return (
        f'<model name="{name}"><pose>{pose}</pose><link name="link"><inertial><mass>{mass}</mass>'
        f"<inertia>{tensor}</inertia></inertial>{collision}</link></model>"
    )


def arms(*placed):
    return "".join(
        f"<include><uri>model://roboy_arm</uri><name>{name}</name><pose>{pose}</pose></include>"
        for name, pose in placed
    )


def run(simulator, steps):
    for _ in range(steps):
        simulator.step()


# Contacts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_what_rests_on_the_floor_is_carried_by_it(shape):
    lying = "0 0 0.205 0 0 0" if shape == "capsule" else "0 0 0.105 0 0 0"
    sim = WorldSimulator(world(FLOOR + body("thing", lying, SHAPES[shape])))
    run(sim, 3000)
    np.testing.assert_allclose(sim.contact_force("thing"), [0, 0, 2 * 9.81], rtol=0, atol=2e-5)
    total = sum(contact.force for contact in sim.contacts)
    np.testing.assert_array_equal(total, sim.contact_force("thing"))
    for contact in sim.contacts:
        assert contact.bodies == ("floor::link", "thing::link")
        np.testing.assert_allclose(contact.normal, [0, 0, 1], atol=1e-9)
        assert abs(contact.position[2]) < 1e-3


def test_the_box_of_the_shipped_table_weighs_on_it():
    sim = WorldSimulator(load_world("table"))
    run(sim, 2000)
    weight = 0.2 * 9.81
    assert sim.contact_force("box")[2] == pytest.approx(weight, rel=1e-6)
    np.testing.assert_allclose(sim.contact_force("desk"), -sim.contact_force("box"), atol=1e-12)
    np.testing.assert_allclose(sim.pose("box").translation, [0.48, -0.45, 0.25], atol=5e-4)


def test_a_stack_carries_the_sum_of_its_weights():
    boxes = body("low", "0 0 0.1 0 0 0", mass=2.0) + body("high", "0 0 0.3 0 0 0", mass=3.0)
    sim = WorldSimulator(world(FLOOR + boxes))
    run(sim, 4000)
    down = {"low": 0.0, "high": 0.0}
    for contact in sim.contacts:
        for name in down:
            if contact.bodies[1] == f"{name}::link":
                down[name] += contact.force[2]
    assert down["high"] == pytest.approx(3 * 9.81, rel=1e-6)
    assert down["low"] == pytest.approx(5 * 9.81, rel=1e-6)


def test_a_mesh_touches_with_its_convex_hull(tmp_path):
    corners = [np.array(c) for c in itertools.product((-0.1, 0.1), repeat=3)]
    triangles = [t for t in itertools.combinations(corners, 3) if np.ptp(t, axis=0).min() == 0]
    file = tmp_path / "cube.stl"
    data = b"\0" * 80 + struct.pack("<I", len(triangles))
    for triangle in triangles:
        data += struct.pack("<12fH", 0, 0, 0, *np.concatenate(triangle), 0)
    file.write_bytes(data)
    mesh = f"<mesh><uri>file://{file}</uri></mesh>"
    sim = WorldSimulator(world(FLOOR + body("thing", "0 0 0.105 0 0 0", mesh)))
    run(sim, 3000)
    assert sim.contact_force("thing")[2] == pytest.approx(2 * 9.81, rel=1e-5)
    assert sim.pose("thing").translation[2] == pytest.approx(0.1, abs=1e-3)


def test_before_the_first_step_and_after_a_reset_nothing_is_known_of_contacts():
    sim = WorldSimulator(world(FLOOR + body("thing")))
    assert sim.contacts == ()
    run(sim, 10)
    assert sim.contacts
    sim.reset()
    assert sim.contacts == ()
    assert not sim.contact_force("thing").any()
    assert (sim.time, sim.steps) == (0.0, 0)


def test_contact_forces_end_when_bodies_part():
    sim = WorldSimulator(world(FLOOR + body("thing")))
    run(sim, 50)
    sim.apply_wrench("thing", (0, 0, 500), duration=0.05)
    run(sim, 100)
    assert sim.contacts == ()
    assert not sim.contact_force("thing").any()


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_forces_of_contacts_are_those_that_mujoco_tells(margin):
    """Read from its constraints where all contacts act, else one by one: the same bytes."""
    sim = WorldSimulator(world(FLOOR + body("thing")))
    run(sim, 20)
    sim.apply_wrench("thing", (3.0, 1.0, 0.0), duration=0.05)
    run(sim, 10)
    sim.model.geom_margin[:] = margin
    sim.model.geom_gap[:] = margin
    mujoco.mj_step1(sim.model, sim.data)
    mujoco.mj_step2(sim.model, sim.data)
    fast, slow = (_Met(sim.model, sim.data, direct=direct) for direct in (True, False))
    assert len(slow.contacts) > 0
    assert fast.body_forces.any()
    assert fast.body_forces.tobytes() == slow.body_forces.tobytes()
    for one, other in zip(fast.contacts, slow.contacts, strict=True):
        assert one.bodies == other.bodies
        assert one.force.tobytes() == other.force.tobytes()
        assert one.position.tobytes() == other.position.tobytes()


# Motion ----------------------------------------------------------------------------------------


def momentum(sim, masses):
    linear, angular = np.zeros(3), np.zeros(3)
    for name, (mass, moment) in masses.items():
        velocity, place = sim.velocity(name), sim.pose(name).translation
        linear += mass * velocity[:3]
        angular += np.cross(place, mass * velocity[:3]) + moment * velocity[3:]
    return linear, angular


def test_momentum_of_two_bodies_that_collide():
    masses = {"one": (2.0, 0.02), "two": (3.0, 0.03)}
    content = body("one", "0 0 0 0 0 0") + body(
        "two", "0.5 0.05 0.03 0.3 0.2 0.1", mass=3.0, moment=0.03
    )
    sim = WorldSimulator(world(content, WEIGHTLESS))
    sim.apply_wrench("one", (40, 0, 0), (0.1, 0.2, 0.1), duration=0.05)
    run(sim, 50)
    before = momentum(sim, masses)
    np.testing.assert_allclose(before[0], [2.0, 0, 0], atol=1e-12)
    touched, kinetic = 0, sim.energy()[0]
    for _ in range(1500):
        sim.step()
        touched += bool(sim.contacts)
    after = momentum(sim, masses)
    assert touched
    assert sim.velocity("two")[0] > 0.3
    np.testing.assert_allclose(after[0], before[0], atol=1e-10)
    np.testing.assert_allclose(after[1], before[1], atol=1e-3)
    assert sim.energy()[0] < kinetic * (1 + 1e-6)


def test_a_body_falls_as_gravity_says():
    sim = WorldSimulator(world(body("thing", "0 0 5 0 0 0"), "<gravity>0 0 -2</gravity>"))
    energy = sum(sim.energy())
    run(sim, 500)
    t, dt = 0.5, 1e-3
    # semi-implicit Euler: z = z0 - g/2 t (t + dt)
    assert sim.pose("thing").translation[2] == pytest.approx(5 - t * (t + dt), abs=1e-12)
    np.testing.assert_allclose(sim.velocity("thing"), [0, 0, -1, 0, 0, 0], atol=1e-12)
    assert sum(sim.energy()) == pytest.approx(energy, rel=1e-3)


def test_a_wrench_at_a_point_turns_the_body():
    sim = WorldSimulator(world(body("thing", "0 0 0 0 0 1"), WEIGHTLESS))
    sim.apply_wrench("thing::link", (0, 0, 1), duration=1e-3, point=(0.1, 0, 0))
    run(sim, 5)
    np.testing.assert_allclose(sim.velocity("thing")[:3], [0, 0, 5e-4], atol=1e-12)
    lever = 0.1 * np.array([np.cos(1), np.sin(1), 0])
    spin = np.cross(lever, (0, 0, 1)) * 1e-3 / 0.02
    np.testing.assert_allclose(sim.velocity("thing")[3:], spin, rtol=1e-3, atol=1e-9)


def test_an_impact_on_the_floor_adds_no_energy():
    sim = WorldSimulator(world(FLOOR + body("thing", "0 0 0.5 0.4 0.3 0")))
    start = sum(sim.energy())
    highest = start
    for _ in range(2000):
        sim.step()
        highest = max(highest, sum(sim.energy()))
    assert highest < start + 0.01 * abs(start)
    assert sim.energy()[0] < 1e-6


# Joints between models -------------------------------------------------------------------------


def grip(name, parent, kind="fixed", axis=""):
    return (
        f'<joint name="{name}" type="{kind}"><pose relative_to="{parent}"/>'
        f"<parent>{parent}</parent><child>handle::link</child>{axis}</joint>"
    )


@pytest.mark.parametrize("kind", ["fixed", "ball"])
def test_a_handle_in_two_hands_keeps_their_distance(kind):
    content = arms(("left", "0 0.3 0 0 0 0"), ("right", "0 -0.3 0 0 0 0"))
    content += body("handle", "0.5 0 0.5 0 0 0", shape="", mass=0.3, moment=1e-3)
    content += grip("left_grip", "left::lower_arm", kind)
    content += grip("right_grip", "right::lower_arm", kind)
    sim = WorldSimulator(world(content))
    robots = robots_within(sim)
    ends = ("left::lower_arm", "right::lower_arm")

    def between():
        first, second = (sim.pose(name).translation for name in ends)
        return np.linalg.norm(first - second)

    start, errors = between(), []
    rng = np.random.default_rng(5)
    poses = [sim.pose(name).translation.copy() for name in ends]
    for k in range(1000):
        if k % 100 == 0:
            for robot in robots.values():
                robot.tell(rng.uniform(5, 60, len(robot.robot.muscles)))
        sim.step()
        errors.append(abs(between() - start))
    moved = [np.linalg.norm(sim.pose(n).translation - p) for n, p in zip(ends, poses, strict=True)]
    print(kind, max(errors), moved)
    assert max(moved) > 5e-3
    assert max(errors) < 2e-4


def test_a_door_between_models_turns_about_its_axis_alone():
    content = (
        '<model name="frame"><static>true</static><link name="link"/></model>'
        + body("handle", "0.5 0 0 0 0 0", shape="")
        + '<joint name="hinge" type="revolute"><pose relative_to="frame::link"/>'
        "<parent>frame::link</parent><child>handle::link</child><axis><xyz>0 1 0</xyz></axis>"
        "</joint>"
    )
    sim = WorldSimulator(world(content))
    run(sim, 300)
    place = sim.pose("handle")
    assert place.translation[2] < -0.2
    assert np.linalg.norm(place.translation) == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(place.rotation[:, 1], [0, 1, 0], atol=1e-4)
    # a pendulum: what it lost in height it has in speed
    spin = sim.velocity("handle")[4]
    inertia, fallen = 0.02 + 2 * 0.25, -place.translation[2]
    assert 0.5 * inertia * spin**2 == pytest.approx(2 * 9.81 * fallen, rel=0.01)


def test_what_is_joined_does_not_collide():
    overlapping = body("one") + body("handle", "0.05 0 0.1 0 0 0") + grip("glue", "one::link")
    sim = WorldSimulator(world(overlapping, WEIGHTLESS))
    run(sim, 100)
    assert sim.contacts == ()
    relative = sim.pose("one").inverse() @ sim.pose("handle")
    np.testing.assert_allclose(relative.translation, [0.05, 0, 0], atol=1e-9)


# Robots ----------------------------------------------------------------------------------------


def test_two_arms_move_as_one_alone():
    sim = WorldSimulator(load_world("two_arms"))
    robots = robots_within(sim)
    robot = load("roboy_arm")
    alone = Simulator(robot, ground=0.0)
    rng = np.random.default_rng(1)
    for _ in range(300):
        tensions = rng.uniform(1, 50, len(robot.muscles))
        alone.step(tensions)
        for one in robots.values():
            one.tell(tensions)
        sim.step()
    for one in robots.values():
        np.testing.assert_allclose(one.state.q, alone.state.q, atol=1e-9)
        np.testing.assert_allclose(one.state.muscle_lengths, alone.state.muscle_lengths, atol=1e-9)
    shift = robots["left_arm"].link_poses() - alone.link_poses()
    np.testing.assert_allclose(shift[:, :3, 3], [[0, 0.6, 0]] * len(robot.links), atol=1e-9)
    assert robots["left_arm"].time == sim.time == alone.time


def test_a_world_repeats_to_the_last_bit():
    def played(sim, robots):
        rng = np.random.default_rng(2)
        sim.reset()
        rows = []
        for _ in range(200):
            for one in robots.values():
                one.tell(rng.uniform(1, 50, len(one.robot.muscles)))
            sim.step()
            rows.append(sim.data.qpos.copy())
        return np.array(rows).tobytes()

    sim = WorldSimulator(load_world("two_arms"))
    robots = robots_within(sim)
    first = played(sim, robots)
    assert played(sim, robots) == first
    fresh = WorldSimulator(load_world("two_arms"))
    assert played(fresh, robots_within(fresh)) == first


def test_contact_forces_are_part_of_the_robots_state():
    text = arms(("arm", "0 0 0 0 0 0")) + body("weight", "0 0 0 0 0 0", SHAPES["sphere"], mass=1.0)
    sim = WorldSimulator(world(text))
    (robot,) = robots_within(sim).values()
    assert robot.state.contact_forces.shape == (len(robot.robot.links), 3)
    links = [link.name for link in robot.robot.links if link.collisions]
    row = [link.name for link in robot.robot.links].index(links[-1])
    # the weight begins above the last link that can touch
    place = robot.link_poses()[row] @ np.append(
        robot.robot.links[row].collisions[0].pose.translation, 1
    )
    address = sim.model.joint("weight::link_free").qposadr[0]
    sim.data.qpos[address : address + 3] = place[:3] + np.array([0, 0, 0.3])
    felt = np.zeros(3)
    for _ in range(400):
        robot.step(np.full(len(robot.robot.muscles), 30.0))
        forces = robot.state.contact_forces
        np.testing.assert_allclose(forces.sum(axis=0), -sim.contact_force("weight"), atol=1e-9)
        felt = np.minimum(felt, forces[row])
    assert felt[2] < -1.0


def test_a_robot_in_a_world_with_objects():
    sim = Simulator(load("roboy_arm"), world=load_world("table"))
    assert sim.name == "roboy_arm"
    assert set(sim.world.object_poses()) == {"floor::link", "desk::link", "box::link"}
    sim.step(np.full(11, 20.0))
    assert sim.steps == 1
    sim.apply_wrench("lower_arm", (0, 0, 1), duration=0.01)
    sim.step(np.full(11, 20.0))


# Grasps ----------------------------------------------------------------------------------------


def test_a_grasped_box_follows_the_hand_and_is_let_go():
    sim = Simulator(load("roboy_arm"), world=load_world("table"))
    hand, free = "roboy_arm::lower_arm", sim.world
    relative = (free.pose(hand).inverse() @ free.pose("box")).matrix
    free.grasp(hand, "box")
    assert free.grasped == ((hand, "box::link"),)
    rng = np.random.default_rng(3)
    before, far = free.pose("box").translation, 0.0
    for k in range(600):
        if k % 100 == 0:
            tensions = rng.uniform(5, 80, 11)
        sim.step(tensions)
        now = (free.pose(hand).inverse() @ free.pose("box")).matrix
        np.testing.assert_allclose(now, relative, atol=2e-3)
        far = max(far, np.linalg.norm(free.pose("box").translation - before))
    assert far > 0.02
    free.release(hand, "box::link")
    assert free.grasped == ()
    run(free, 200)
    later = (free.pose(hand).inverse() @ free.pose("box")).matrix
    assert np.abs(later - relative).max() > 1e-2


def test_a_reset_lets_go():
    sim = Simulator(load("roboy_arm"), world=load_world("table"))
    sim.world.grasp("roboy_arm::lower_arm", "box")
    sim.reset()
    assert sim.world.grasped == ()
    np.testing.assert_allclose(sim.world.pose("box").translation, [0.48, -0.45, 0.25])


# Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda s: s.pose("bx"), UnknownNameError, "'bx'.*box"),
        (lambda s: s.grasp("roboy_arm::hand", "box"), UnknownNameError, "lower_arm"),
        (lambda s: s.grasp("roboy_arm::lower_arm", "desk"), UnknownNameError, "box::link"),
        (lambda s: s.release("roboy_arm::lower_arm", "box"), CardsError, "nothing is held"),
        (
            lambda s: [s.grasp("roboy_arm::lower_arm", "box") for _ in range(2)],
            CardsError,
            "already",
        ),
        (lambda s: s.apply_wrench("box", (0, 0), duration=1), ShapeError, "force"),
        (lambda s: s.apply_wrench("box", (0, 0, 1), duration=np.inf), ShapeError, "duration"),
        (lambda s: Simulator.within(s, "roboy_arm"), CardsError, "simulated already"),
        (lambda s: Simulator.within(s, "arm"), UnknownNameError, "roboy_arm"),
    ],
)
def test_mistakes(mistake, error, message):
    sim = Simulator(load("roboy_arm"), world=load_world("table")).world
    with pytest.raises(error, match=message):
        mistake(sim)


def test_a_joint_at_a_link_that_is_no_body():
    weight = Inertia(1.0, np.zeros(3), np.eye(3))
    axes = (JointAxis(np.eye(3)[2]),)
    cart = Robot(
        "cart",
        (Link("slider"), Link("load", weight)),
        (
            Joint("rail", "prismatic", WORLD, "slider", axes=axes),
            Joint("turn", "revolute", "slider", "load", axes=axes),
        ),
    )
    joint = ModelJoint("glue", "fixed", WORLD, "cart::slider", Pose(), Pose())
    with pytest.raises(DescriptionError, match=r"'glue'.*'cart::slider' has neither mass nor"):
        WorldSimulator(World("w", (WorldModel("cart", cart),), (joint,)))


def test_a_world_that_diverges_stops_as_a_whole():
    sim = Simulator(load("roboy_arm"), world=load_world("table"))
    sim.world.apply_wrench("box", (1e300, 0, 0), duration=1.0)
    with pytest.raises(SimulationStoppedError, match="box"):
        run(sim.world, 5)
    with pytest.raises(SimulationStoppedError):
        sim.world.step()
    sim.reset()
    sim.world.step()


def test_contact_wrenches_do_the_work_of_the_contacts():
    """J' of the links' wrenches is what contacts put on the joints in MuJoCo's own equations."""
    robot = load("roboy_arm")
    sim = Simulator(robot, world=load_world("table"))
    for _ in range(3000):  # at the minimum tensions the arm comes to lie on the desk
        sim.step(np.full(len(robot.muscles), 10.0))
    found = sim.contact_wrenches()
    assert set(found) <= {link.name for link in robot.links}
    forces = sim.state.contact_forces
    for i, link in enumerate(robot.links):
        np.testing.assert_allclose(found.get(link.name, np.zeros(6))[:3], forces[i], atol=1e-9)
    dynamics = make_dynamics(robot, "numeric")
    torque = np.zeros(robot.tree.nv)
    for link, wrench in found.items():
        jacobian = dynamics.operational(sim.state.q, np.zeros(robot.tree.nv), link).jacobian
        torque += jacobian.T @ wrench
    assert np.abs(torque).max() > 0.1
    names = [sim._placed.prefixed(name) for name in robot.tree.velocity_names]
    total = np.array([sim.data.joint(name).qfrc_constraint[0] for name in names])
    # the first joint leans against its limit, which is a constraint too
    q, lower = sim.state.q, robot.tree.lower
    assert [abs(a - b) < 1e-3 for a, b in zip(q, lower, strict=True)] == [
        True,
        False,
        False,
        False,
    ]
    np.testing.assert_allclose(torque[1:], total[1:], rtol=1e-4, atol=1e-5)
    assert abs(torque[0] - total[0]) > 0.1


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_a_saved_state_leads_to_the_same_motion(backend):
    """Joints, activations and fibre lengths: what follows is what followed, to the last bit."""
    robot = Simulator(load("wrap_elbow"), 1e-3, muscle_backend=backend)
    told = np.linspace(0.3, 0.1, len(robot.robot.muscles))
    kinds = np.full(len(told), KINDS.index("excitation"))

    def motion(count):
        found = []
        for _ in range(count):
            robot.step(told, kinds)
            state = robot.state
            found.append(np.concatenate([state.q, state.qd, state.tensions, state.actuators]))
        return np.array(found)

    motion(120)
    before, saved = robot.state, robot.world.save()
    first = motion(60)
    robot.reset()
    motion(30)
    robot.world.restore(saved)
    assert robot.time == 0.0
    np.testing.assert_array_equal(robot.state.q, before.q)
    np.testing.assert_array_equal(robot.state.actuators, before.actuators)
    assert np.ptp(first, axis=0).max() > 1e-3, "it moves"
    np.testing.assert_array_equal(motion(60), first)


def test_a_saved_state_has_the_objects_and_what_is_held():
    falling = WorldSimulator(world(body("box", pose="0 0 1.0 0.1 0.2 0.3")), 1e-3)
    run(falling, 100)
    saved, height = falling.save(), falling.pose("box").translation[2]
    run(falling, 100)
    # free fall: what the state has of position and velocity tells the rest
    after = falling.pose("box").translation[2]
    falling.restore(saved)
    assert falling.pose("box").translation[2] == height < 1.0
    run(falling, 100)
    assert falling.pose("box").translation[2] == after


def test_a_saved_state_of_another_world_is_refused():
    one = WorldSimulator(world(body("box")), 1e-3)
    two = WorldSimulator(world(body("a") + body("b", pose="1 0 0.1 0 0 0")), 1e-3)
    run(one, 3)
    with pytest.raises(CardsError, match="another world"):
        one.restore(two.save())
    assert one.steps == 3
