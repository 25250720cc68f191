"""Terrains in MuJoCo: the heights that contacts have, and the friction of two bodies."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Inertia,
    Joint,
    Link,
    Sphere,
)
from cards_core.robot.model import Robot
from cards_core.robot.terrain import height_function, read_terrain, terrain_model
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_sim.build import build_host
from cards_sim.world_simulator import WorldSimulator

TERRAINS = [
    "flat",
    "slope:angle=7.5,direction=30",
    "hills:extent=2,resolution=0.004",
    "blocks",
    "stairs:direction=40,start=-0.2",
    "craters:extent=2",
]


def body(name, shapes, place, inertia):
    link = Link(name, inertia, collisions=shapes)
    joint = Joint(f"{name}_free", "free", WORLD, name)
    home = {joint.name: (*place, 1.0, 0.0, 0.0, 0.0)}
    return WorldModel(name, Robot(name, (link,), (joint,), home=home))


@pytest.mark.parametrize("text", TERRAINS)
def test_rays_meet_the_ground_at_its_height(text):
    terrain = read_terrain(text)
    model = terrain_model(terrain, 0.1)
    built = mujoco.MjModel.from_xml_string(
        to_mjcf(World("w", (WorldModel("terrain", model),)).combined())
    )
    data = mujoco.MjData(built)
    mujoco.mj_forward(built, data)
    places = np.random.default_rng(1).uniform(-0.9, 0.9, (300, 2))
    geom = np.zeros(1, np.int32)
    down = np.array([0.0, 0.0, -1.0])
    found = [
        3.0 - mujoco.mj_ray(built, data, np.array([*place, 3.0]), down, None, 1, -1, geom)
        for place in places
    ]
    expected = height_function(terrain)(*places.T) + 0.1
    assert np.abs(np.array(found) - expected).max() < 1e-6


@pytest.mark.parametrize("text", ["hills:extent=2,resolution=0.005", "stairs:start=-0.1"])
def test_a_ball_comes_to_rest_on_the_ground(text):
    """In a valley and on a step; it sinks in by as much as its weight presses."""
    terrain, radius = read_terrain(text), 0.005
    place = np.array([-0.5 * np.pi * 0.04, 0.0]) if "hills" in text else np.array([0.125, 0.3])
    height = height_function(terrain)
    ball = body(
        "ball",
        (Collision("ball", Sphere(radius)),),
        (*place, float(height(*place)) + radius + 0.001),
        Inertia(0.01, np.zeros(3), 1e-6 * np.eye(3)),
    )
    world = World("w", (WorldModel("terrain", terrain_model(terrain)), ball))
    simulator = WorldSimulator(world)
    for _ in range(2000):
        simulator.step()
    x, y, z = simulator.pose("ball").translation
    assert np.hypot(x - place[0], y - place[1]) < 0.004
    # a ball in a bowl touches at its lowest point if it is the smaller of both
    around = np.linspace(-radius, radius, 41)
    dx, dy = np.meshgrid(around, around)
    inside = dx**2 + dy**2 < radius**2
    under = np.where(inside, np.sqrt(np.maximum(radius**2 - dx**2 - dy**2, 0.0)), 0.0)
    gap = (z - under - height(x + dx, y + dy))[inside].min()
    # contacts give way by g t^2 (1 - d) under the weight, MuJoCo's t = 20 ms, d = 0.9
    assert -9.81 * 0.02**2 * 0.1 < gap < 1e-6


def sliding(friction, ground, *others):
    """Return the mean deceleration of a rod that slides along itself, [m/s^2].

    Contacts rattle a little: the vertical momentum says by how much they pushed.
    """
    turned = Pose.from_xyz_rpy([0.0, 0.0, 0.0], [0.0, 0.5 * np.pi, 0.0])
    shapes = (Collision("rod", Capsule(0.01, 0.4), turned, friction),)
    world = World(
        "w",
        (
            WorldModel("terrain", terrain_model(read_terrain(f"flat:friction={ground}"))),
            body("rod", shapes, (0.0, 0.0, 0.01), Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))),
            *others,
        ),
    )
    simulator = WorldSimulator(world)
    velocity = simulator.data.qvel[:3]
    velocity[0] = 6.0
    for _ in range(100):
        simulator.step()
    start = velocity.copy()
    for _ in range(500):
        simulator.step()
    change = velocity - start
    return 9.81 * float(-change[0] / (9.81 * 0.5 + change[2]))


def test_friction_of_two_bodies_is_the_product():
    """0.5 and 0.5 brake with 0.25 g, NTRT's 2.458 m/s^2 at its g = 9.81 (measured there)."""
    assert sliding(0.5, 0.5) == pytest.approx(2.458, rel=5e-3)
    assert sliding(0.5, 0.5) == pytest.approx(0.25 * 9.81, rel=1e-4)
    assert sliding(0.3, 0.5) == pytest.approx(0.15 * 9.81, rel=1e-4)
    assert sliding(0.5, 1.0) == pytest.approx(0.5 * 9.81, rel=1e-4)


def block(terrain, friction=0.5):
    """Return a world with a low block on a terrain, at rest."""
    shapes = (Collision("block", Box(np.array([0.2, 0.2, 0.04])), friction=friction),)
    inertia = Inertia(1.0, np.zeros(3), np.diag([3.5e-3, 3.5e-3, 6.7e-3]))
    ground = WorldModel("terrain", terrain_model(read_terrain(terrain)))
    simulator = WorldSimulator(World("w", (ground, body("block", shapes, (0, 0, 0.02), inertia))))
    for _ in range(300):
        simulator.step()
    return simulator


@pytest.mark.parametrize("degrees", [0.0, 20.0, 45.0, 70.0, 90.0, 135.0, 225.0])
def test_a_block_is_braked_alike_in_all_directions(degrees):
    """By mu times the normal force, against its velocity; four corners rattle a little."""
    simulator = block("flat:friction=1", 0.4)
    ahead = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    velocity = simulator.data.qvel[:3]
    velocity[:2] = 3.0 * ahead
    for _ in range(50):
        simulator.step()
    start = velocity.copy()
    for _ in range(500):
        simulator.step()
    change = velocity - start
    pushed = 9.81 * 0.5 + change[2]
    assert -change[:2] @ ahead == pytest.approx(0.4 * pushed, rel=0.01)
    assert abs(change[1] * ahead[0] - change[0] * ahead[1]) < 0.01 * pushed


@pytest.mark.parametrize("angle", [10.0, 20.0])
def test_a_block_stays_on_a_slope_that_is_less_steep_than_friction_allows(angle):
    """Soft contacts creep: less than 0.02 mm/s at 20 degrees with mu = 0.5."""
    simulator = block(f"slope:angle={angle:g},friction=1", 0.5)
    start = simulator.data.qpos[:3].copy()
    for _ in range(1000):
        simulator.step()
    assert np.linalg.norm(simulator.data.qpos[:3] - start) < 2e-5


def test_friction_with_bodies_that_are_not_alike():
    other = body(
        "other",
        (Collision("ball", Sphere(0.1), friction=0.9),),
        (3.0, 3.0, 0.1),
        Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3)),
    )
    assert sliding(0.3, 0.5, other) == pytest.approx(0.15 * 9.81, rel=1e-4)
    assert sliding(0.5, 0.5, other) == pytest.approx(0.25 * 9.81, rel=1e-4)


def test_parts_of_a_robot_do_not_touch_where_they_are_joined():
    """Shapes of unlike friction are pairs, which MuJoCo takes without asking what is joined."""

    def link(name, friction):
        return Link(
            name,
            Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3)),
            collisions=(Collision("ball", Sphere(0.1), friction=friction),),
        )

    joint = Joint(
        "a_b", "ball", "a", "b", parent_to_joint=Pose(translation=np.array([0.05, 0, 0]))
    )
    free = Joint("a_free", "free", WORLD, "a")
    robot = Robot("pair", (link("a", 0.2), link("b", 0.7)), (free, joint))
    model = mujoco.MjModel.from_xml_string(to_mjcf(replace(robot, gravity=np.zeros(3))))
    assert model.npair == 0
    grounded = mujoco.MjModel.from_xml_string(to_mjcf(robot, ground=-1.0))
    assert sorted(grounded.pair_friction[:, 0]) == pytest.approx([0.2, 0.7])


def test_simulator_takes_a_terrain():
    robot = load("tetraspine_hardware")
    host = build_host(ParameterSet({"terrain": "hills:friction=0.5"}, "simulator"), robot)
    for _ in range(300):
        host.step()
    height = height_function(read_terrain("hills"))
    data = host.simulator.world.data
    level = data.geom_xpos[0, 2] + 0.02  # MuJoCo counts from the lowest point
    above = [z - level - height(x, y) for x, y, z in data.xipos[2:5]]
    assert all(0.0 < h < 0.3 for h in above)
    assert any("terrain" in name for item in host.simulator.world.contacts for name in item.bodies)
    with pytest.raises(CardsError, match="expected: one of them"):
        build_host(ParameterSet({"terrain": "flat", "ground": True}, "simulator"), robot)
    with pytest.raises(CardsError, match="no terrain named 'dune'"):
        build_host(ParameterSet({"terrain": "dune"}, "simulator"), robot)
