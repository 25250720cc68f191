"""Cables over boxes, convex meshes and the ground: shortest way, outside of them, forces."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from cards_core.errors import DescriptionError
from cards_core.muscles.engine import MuscleEngine
from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.of_robot import contact_cables
from cards_core.paths.contacts.shapes import ContactShape, Hull, shape_tables
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Ellipsoid,
    HeightField,
    Inertia,
    Joint,
    Link,
    Mesh,
    Muscle,
    Plane,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.height_field import field_triangles, grid_points, surface_height
from cards_core.robot.model import Robot
from cards_core.robot.terrain import read_terrain
from cards_core.spatial import Pose

BOX = Box(np.array([0.4, 0.3, 0.5]))


def ball_of_points():
    points = np.random.default_rng(3).normal(size=(30, 3))
    return Hull(0.3 * points / np.linalg.norm(points, axis=1)[:, None])


def hills(size=1.0, resolution=0.02):
    x, y = grid_points((size, size), resolution)
    return HeightField(0.02 * np.sin(x / 0.04) * np.cos(y / 0.04), (size, size))


def cable_at(shape, p, q):
    """A cable between links 0 and 1 at p and q, and a shape of link 2; poses."""
    cable = ContactCable((0, 1), np.zeros((2, 3)), (0,))
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[0, :3, 3], poses[1, :3, 3] = p, q
    return ContactCables(3, [ContactShape(2, shape)], [cable]), poses


def depth(shape, x):
    """How deep points are in a shape, negative outside."""
    match shape:
        case Box(size):
            return np.min(0.5 * size - np.abs(x), axis=-1)
        case Hull():
            planes = ConvexHull(shape.vertices).equations
            return np.min(-(x @ planes[:, :3].T + planes[:, 3]), axis=-1)
        case HeightField():
            height = surface_height(shape, x[:, 0], x[:, 1])
            return np.where(np.isnan(height), -1.0, height - x[:, 2])


def corners_of(cables):
    first, last = cables.ends(0)
    return np.array([first, *(contact.start for contact in cables.contacts(0)), last])


def check_shortest(cables, shape, placed):
    """Every straight piece is outside of the shape, and no crossing of an edge can shorten it."""
    path = (corners_of(cables) - placed[:3, 3]) @ placed[:3, :3]
    share = np.linspace(0.01, 0.99, 25)[:, None]
    for a, b in pairwise(path):
        assert np.max(depth(shape, a + share * (b - a))) < 1e-9
    for before, x, after in zip(path, path[1:], path[2:], strict=False):
        if min(np.linalg.norm(before - x), np.linalg.norm(after - x)) < 1e-7:
            continue
        bend = (before - x) / np.linalg.norm(before - x) + (after - x) / np.linalg.norm(after - x)
        size = np.linalg.norm(bend)
        # it pushes into the shape; what is left over of it along the edge would shorten it
        if size > 1e-6:
            assert depth(shape, (x + 1e-6 * bend / size)[None])[0] > 0.0
    return path


# Closed forms ------------------------------------------------------------------------------------


def test_over_a_box_against_the_developed_surface():
    """Over two parallel edges the way is straight once the faces are laid flat."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        turn, place = Rotation.random(rng=rng).as_matrix(), rng.uniform(-1, 1, 3)
        # the cable runs along x over the upper face, y up, over edges at x = -0.2 and 0.2
        p, q = rng.uniform([-0.9, -0.3, -0.1], [-0.3, 0.1, 0.1], (2, 3)) * [[1, 1, 1], [-1, 1, 1]]
        cables, poses = cable_at(BOX, turn @ p + place, turn @ q + place)
        for rise in np.linspace(-1.0, 0.0, 30):
            poses[2, :3, :3] = turn
            poses[2, :3, 3] = place + turn @ [0.0, rise, 0.0]
            length = cables.solve(poses)[0]
        down = [np.hypot(0.2 + p[0], 0.15 - p[1]), np.hypot(q[0] - 0.2, 0.15 - q[1])]
        expected = np.hypot(down[0] + 0.4 + down[1], q[2] - p[2])
        assert length == pytest.approx(expected, abs=1e-12)
        assert len(cables.contacts(0)) == 2
    assert cables.failures == 0


@pytest.mark.parametrize("link", [2, 3])
@pytest.mark.parametrize("z", [0.0, 0.2499, 0.2501])
def test_edges_hold_as_far_as_their_ends(z, link):
    """A cable across two edges close to their ends, and one that passes beside them."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        turn, place = Rotation.random(rng=rng).as_matrix(), rng.uniform(-1, 1, 3)
        cable = ContactCable((0, 1), np.zeros((2, 3)), (0,))
        cables = ContactCables(3, [ContactShape(link, BOX, Pose(turn, place))], [cable])
        poses = np.tile(np.eye(4), (4, 1, 1))
        for y in np.linspace(0.2, 0.1, 30):
            poses[:2, :3, 3] = place + np.array([[-0.5, y, z], [0.5, y, z]]) @ turn.T
            length = cables.solve(poses)[0]
        over = 0.4 + 2.0 * np.hypot(0.3, 0.05)
        assert length == pytest.approx(over if z < 0.25 else 1.0, abs=1e-12)


def test_over_two_edges_at_a_corner_against_an_optimiser():
    """From in front to behind past a corner: over two edges that are not parallel."""
    p, q = np.array([0.1, -0.1, 0.6]), np.array([0.1, 0.4, -0.3])
    cables, poses = cable_at(BOX, p, q)
    for x in np.linspace(-0.3, 0.0, 200):  # the side of the box pushes the cable
        poses[2, :3, 3] = x, 0.0, 0.0
        length = cables.solve(poses)[0]

    def way(z):
        a, b = np.array([0.2, z[0], 0.25]), np.array([0.2, 0.15, z[1]])
        return np.linalg.norm(a - p) + np.linalg.norm(b - a) + np.linalg.norm(q - b)

    best = minimize(way, [0.1, 0.2], tol=1e-14)
    assert len(cables.contacts(0)) == 2
    assert length == pytest.approx(best.fun, abs=1e-9)
    check_shortest(cables, BOX, poses[2])
    for x in np.linspace(0.0, 0.15, 200):  # and lets it go
        poses[:2, :3, 3] = np.array([p, q]) + np.array([x, 0.0, 0.0])
        length = cables.solve(poses)[0]
    assert cables.contacts(0) == []
    assert length == pytest.approx(np.linalg.norm(q - p), abs=1e-15)


def test_a_hull_of_the_corners_of_a_box_is_the_box():
    corners = 0.5 * BOX.size * np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    lengths = []
    for shape in (BOX, Hull(corners)):
        cables, poses = cable_at(shape, (-1, 0.1, 0.05), (1, 0.0, -0.1))
        found = []
        for step in np.linspace(0.0, 1.0, 300):
            turn = Rotation.from_rotvec([step, 2.0 * step, -step]).as_matrix()
            poses[2, :3, :3], poses[2, :3, 3] = turn, [0.1, 0.6 - step, 0.0]
            found.append(cables.solve(poses)[0])
        lengths.append(found)
    assert np.abs(np.subtract(*lengths)).max() < 1e-12
    assert max(lengths[0]) > 2.02


def test_over_a_ridge_of_the_ground():
    """A roof along y: the way is straight when its two sides are laid flat."""
    x, _ = grid_points((2.0, 1.0), 0.1)
    roof = HeightField(0.3 - 0.5 * np.abs(x), (2.0, 1.0))
    for p, q in (((-0.8, -0.2, 0.0), (0.8, 0.3, 0.05)), ((-0.4, 0.3, 0.2), (0.7, -0.3, 0.1))):
        cables, poses = cable_at(roof, p, q)
        length = cables.solve(poses)[0]  # from above at once
        expected = np.hypot(np.hypot(p[0], 0.3 - p[2]) + np.hypot(q[0], 0.3 - q[2]), q[1] - p[1])
        assert length == pytest.approx(expected, abs=1e-12)
        wrenches = cables.pull(np.zeros((4, 6)), np.array([2.0]))
        assert wrenches[2, 2] < 0.0


def test_no_way_is_held_by_a_plane_or_in_a_hollow():
    x, _ = grid_points((2.0, 1.0), 0.1)
    hollow = HeightField(0.5 * np.abs(x), (2.0, 1.0))
    for shape in (Plane(np.array([0.0, 0.0, 1.0])), hollow):
        cables, poses = cable_at(shape, (-0.5, 0.0, 0.3), (0.5, 0.1, 0.3))
        assert cables.solve(poses)[0] == np.linalg.norm([1.0, 0.1])
        assert cables.contacts(0) == []


@pytest.mark.parametrize("kinds", ["sphere", "cylinder and sphere"])
def test_spheres_and_rods_against_the_geodesic_solver(kinds):
    """Wraps of the geodesic solver over the same surfaces."""
    shapes = {"a": (Sphere(0.2), (-0.5, 0.0, 0.05)), "b": (Capsule(0.15, 2.0), (0.5, 0.0, -0.1))}
    if kinds == "sphere":
        del shapes["b"]
    ends = tuple(ViaPoint("world", np.array(x)) for x in ((-1.3, -0.05, 0.0), (1.2, -0.1, 0.1)))
    tilt = Rotation.from_rotvec([0.3, 0.1, 0.0]).as_matrix()
    links, surfaces, joints = [], [], []
    for name, (shape, place) in shapes.items():
        links.append(Link(name, Inertia(1.0), collisions=(Collision(name, shape, Pose(tilt)),)))
        joints.append(
            Joint(f"to_{name}", "fixed", "world", name, Pose(translation=np.array(place)))
        )
        smooth = Ellipsoid(np.full(3, shape.radius)) if isinstance(shape, Sphere) else None
        if smooth is None:
            from cards_core.robot.elements import Cylinder

            smooth = Cylinder(shape.radius, np.inf)
        surfaces.append(WrapSurface(name, name, smooth, Pose(tilt)))
    sides = [Wrap(name, side=np.array([0.0, 1.0, 0.0])) for name in shapes]
    muscles = (
        Muscle("touching", ends, contact=True),
        Muscle("wrapped", (ends[0], *sides, ends[1])),
    )
    robot = Robot("r", tuple(links), tuple(joints), muscles, wrap_surfaces=tuple(surfaces))
    engine = MuscleEngine(robot)
    poses = np.tile(np.eye(4), (len(links), 1, 1))
    for y in np.linspace(-0.6, -0.1, 100):
        for i, (_, place) in enumerate(shapes.values()):
            poses[i, :3, 3] = place
            poses[i, 1, 3] = y
        engine.motion(poses, np.zeros((len(links), 6)))
    tensions = np.array([3.0, 0.0])
    state = engine.update(poses, np.zeros((len(links), 6)), tensions)
    assert len(engine.contacts.contacts(0)) == len(shapes)
    assert state.lengths[0] == pytest.approx(state.lengths[1], abs=1e-6)
    ours = state.wrenches.copy()
    theirs = engine.update(poses, np.zeros((len(links), 6)), tensions[::-1]).wrenches
    assert np.abs(ours - theirs).max() < 1e-5


# In motion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["box", "hull"])
def test_a_body_tumbling_through_a_cable(kind):
    """At every step the cable is outside, and shortest: over edges, past corners, off again."""
    shape = BOX if kind == "box" else ball_of_points()
    steps = most = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cables, poses = cable_at(shape, (-1, 0, 0), (1, 0, 0))
        turn, x = Rotation.random(rng=rng), np.array([0.0, 0.9, 0.0])
        v, w, target = np.zeros(3), np.zeros(3), np.zeros(3)
        for k in range(1500):
            if k % 200 == 0:
                target = 0.4 * rng.normal(size=3)
            v = v + 2e-4 * (target - x) - 2e-2 * v
            w = 0.98 * w + 1e-3 * rng.normal(size=3)
            x, turn = x + v, Rotation.from_rotvec(w) * turn
            poses[2, :3, :3], poses[2, :3, 3] = turn.as_matrix(), x
            cables.solve(poses)
            ends = (cables.ends(0) - x) @ poses[2, :3, :3]
            if depth(shape, ends).max() > -1e-3:
                cables.reset()  # an end came into the body
                continue
            steps += len(check_shortest(cables, shape, poses[2])) > 2
            most = max(most, len(cables.contacts(0)))
    assert steps > 500
    assert most >= 2
    assert cables.failures == 0


def test_ends_that_wander_over_hills():
    shape = hills()
    steps = most = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cables, poses = cable_at(shape, (-0.12, 0, 0.06), (0.12, 0.01, 0.06))
        x, v = poses[:2, :3, 3].copy(), np.zeros((2, 3))
        for k in range(1500):
            if k % 300 == 0:
                target = rng.uniform(-0.25, 0.25, (2, 3))
            v += 3e-5 * (target - x) - 2e-2 * v + 5e-5 * rng.normal(size=(2, 3))
            x += v
            ground = surface_height(shape, x[:, 0], x[:, 1]) + 0.005
            x[:, 2] = np.clip(x[:, 2], ground, 0.05)
            poses[:2, :3, 3] = x
            cables.solve(poses)
            steps += len(check_shortest(cables, shape, poses[2])) > 2
            most = max(most, len(cables.contacts(0)))
        assert cables.failures == 0
    assert steps > 100
    assert most >= 4


def field_of_blocks(link):
    """Two hundred overlapping blocks and two balls among them, as shapes of a link."""
    rng = np.random.default_rng(5)
    block, ball = Box(np.array([0.05, 0.04, 0.05])), Hull(0.1 * ball_of_points().vertices)
    turns = Rotation.random(200, rng=rng).as_matrix()
    turns[:100] = np.eye(3)
    places = rng.uniform([-0.5, -0.5, -0.02], [0.5, 0.5, -0.015], (200, 3))
    blocks = [
        ContactShape(link, block, Pose(turn, place))
        for turn, place in zip(turns, places, strict=True)
    ]
    balls = [ContactShape(link, ball, Pose(translation=[x, 0.0, 0.0])) for x in (-0.2, 0.2)]
    return blocks + balls + [ContactShape(link, Sphere(0.02), Pose(translation=[0.0, 0.1, 0.0]))]


def test_shapes_at_rest_are_sought_near_the_cable_with_the_same_result():
    """Of the world only what is near is looked at; of a link at the same place everything."""
    cable = ContactCable((0, 1), np.zeros((2, 3)), tuple(range(203)))
    everything, nearby = (ContactCables(3, field_of_blocks(link), [cable]) for link in (2, 3))
    rng = np.random.default_rng(6)
    poses = np.tile(np.eye(4), (4, 1, 1))
    x, v = np.array([[-0.1, 0.0, 0.06], [0.1, 0.0, 0.06]]), np.zeros((2, 3))
    touched = set()
    for k in range(3000):
        if k % 100 == 0:
            target = rng.uniform([-0.4, -0.4, 0.0], [0.4, 0.4, 0.05], (2, 3))
        if k in (1000, 2000, 2001):  # the ground shakes
            poses[2:, :3, 3] += rng.uniform(-0.002, 0.002, 3)
        v += 1e-3 * (target - x) - 5e-2 * v
        x += v
        poses[:2, :3, 3] = x
        assert everything.solve(poses).tobytes() == nearby.solve(poses).tobytes()
        contacts = nearby.contacts(0)
        assert [c.shape for c in contacts] == [c.shape for c in everything.contacts(0)]
        touched |= {c.shape for c in contacts}
    assert len(touched) > 20
    assert everything.failures == nearby.failures


def cable_over_boxes(places, p, q, size=(0.05, 0.05, 0.05)):
    """A cable between links 0 and 1 at p and q, boxes of one size at rest; poses."""
    boxes = [ContactShape(2, Box(np.array(size)), Pose(translation=place)) for place in places]
    cable = ContactCable((0, 1), np.zeros((2, 3)), tuple(range(len(boxes))))
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[0, :3, 3], poses[1, :3, 3] = p, q
    return ContactCables(2, boxes, [cable]), poses


def length_over_a_notch(p, q):
    """The shortest way from a notch, x > 0 and y < 0, up over one of its two rims at z = 0.

    The rims run along y > 0 at x = 0 (where y < 0 is free) and along x > 0 at y = 0.
    """

    def over(axis):
        def length(t):
            x = t[0] * axis + [0.0, 0.0, t[1]]
            return np.linalg.norm(p - x) + np.linalg.norm(q - x)

        options = {"ftol": 1e-16, "gtol": 1e-12}
        return minimize(length, [0.01, 0.0], bounds=[(0.0, 0.1)] * 2, options=options).fun

    return min(over(np.array([0.0, -1.0, 0.0])), over(np.array([1.0, 0.0, 0.0])))


def test_rims_of_one_height_that_cross_hold_no_cable_forever():
    """A way from the notch between two boxes over their rims, led about and out again."""
    # solid: x < 0 (box 0, y from -0.03) and y > 0 (box 1)
    places = [[-0.025, -0.005, -0.025], [0.005, 0.025, -0.025]]
    start, goal = np.array([0.02, -0.02, -0.01]), np.array([-0.02, 0.02, 0.005])
    cables, poses = cable_over_boxes(places, start, [0.02, -0.02, 0.02])
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(40):
        target = goal + rng.uniform(-0.012, 0.012, 3) * [1.0, 1.0, 0.3]
        ends = poses[:2, :3, 3].copy()
        low = np.array([rng.uniform(0.003, 0.025), rng.uniform(-0.025, -0.003), -0.01])
        for share in np.linspace(0.0, 1.0, 80)[1:]:
            poses[0, :3, 3] = ends[0] + share * (low - ends[0])
            poses[1, :3, 3] = ends[1] + share * (target - ends[1])
            cables.solve(poses)
            assert len(cables.contacts(0)) < 5
            if share == 1.0:
                expected = length_over_a_notch(low, target)
                assert cables.lengths[0] == pytest.approx(expected, abs=1e-9)
                held += len(cables.contacts(0)) == 2
    assert 0 < held < 40
    assert cables.failures == 0
    for share in np.linspace(0.0, 1.0, 200):  # lifted, it is free
        poses[0, :3, 3] = low + share * (np.array([0.02, -0.02, 0.03]) - low)
        cables.solve(poses)
    assert not cables.contacts(0)


@pytest.mark.parametrize("seed", range(4))
def test_ends_that_wander_over_blocks_of_one_height(seed):
    """No way through a block, no contact twice, nothing that does not let go."""
    rng = np.random.default_rng(seed)
    places = np.column_stack([rng.uniform(-0.12, 0.12, (14, 2)), np.full(14, -0.025)])
    cables, poses = cable_over_boxes(places, [-0.06, 0.0, 0.02], [0.06, 0.0, 0.02])
    half, touched = 0.025, 0
    x = poses[:2, :3, 3].copy()
    for _ in range(120):
        # ends go down only where no block is
        target = x + rng.uniform(-0.04, 0.04, (2, 3)) * [1.0, 1.0, 0.0]
        target[:, :2] = np.clip(target[:, :2], -0.13, 0.13)
        for step, height in ((10, 0.02), (30, 0.02), (10, -0.004)):
            goal = target.copy() if height < 0.0 or step == 30 else x.copy()
            free = [
                not np.any(np.all(np.abs(places[:, :2] - one[:2]) < half + 1e-3, axis=1))
                for one in goal
            ]
            goal[:, 2] = np.where(free, height, abs(height))
            begin = x.copy()
            for share in np.linspace(0.0, 1.0, step):
                x = begin + share * (goal - begin)
                poses[:2, :3, 3] = x
                cables.solve(poses)
            contacts = cables.contacts(0)
            points = corners_of(cables)
            edges = [(c.shape, *np.round(c.start, 9)) for c in contacts]
            assert len(set(edges)) == len(edges)
            touched += bool(contacts)
            for a, b in pairwise(points):
                inside = a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
                deep = np.min(half - np.abs(inside[:, None] - places), axis=-1)
                assert np.max(deep) < 1e-8
            if height > 0.0:  # both ends are above all blocks
                assert not contacts
    assert touched > 40
    assert cables.failures == 0


def test_what_is_beside_holds_a_way_that_turns_a_corner():
    """From a rim over its corner to an upright edge: another block is under the way there."""
    places = [[-0.04086, 0.06922, -0.025], [-0.04723, -0.01116, -0.025]]
    ends = np.array([[-0.10125, 0.13, 0.00578], [0.00189, -0.02191, -0.00133]])
    cables, poses = cable_over_boxes(places, *ends)
    cables.solve(poses)
    poses[:2, 2, 3] = 0.004, -0.004
    cables.solve(poses)
    rim, upright = cables.contacts(0)
    assert (rim.shape, upright.shape) == (0, 1)
    assert rim.start[2] == pytest.approx(0.0, abs=1e-15)
    assert upright.start[2] < -0.001

    def length(x):
        a = np.array([x[0], 0.06922 - 0.025, 0.0])
        b = np.array([-0.04723 + 0.025, -0.01116 + 0.025, x[1]])
        return sum(
            np.linalg.norm(v) for v in np.diff([poses[0, :3, 3], a, b, poses[1, :3, 3]], axis=0)
        )

    found = minimize(length, [-0.04, -0.001], tol=1e-14)
    assert cables.lengths[0] == pytest.approx(found.fun, abs=1e-10)


@pytest.mark.parametrize("kind", ["box", "hull", "field"])
def test_forces_balance_and_do_the_work_of_the_tension(kind):
    shape = {"box": BOX, "hull": ball_of_points(), "field": hills()}[kind]
    rng = np.random.default_rng(6)
    seen = 0
    for _ in range(20):
        if kind == "field":
            ends = rng.uniform(-0.3, 0.3, (2, 3))
            ends[:, 2] = surface_height(shape, ends[:, 0], ends[:, 1]) + 0.004
            cables, poses = cable_at(shape, *ends)
        else:
            cables, poses = cable_at(shape, (-1, 0, 0), (1, 0, 0))
            poses[2, :3, :3] = Rotation.random(rng=rng).as_matrix()
            poses[2, :3, 3] = rng.uniform(-0.1, 0.1, 3)
        cables.solve(poses)
        contacts = [c.start for c in cables.contacts(0)]
        seen += len(contacts) > 0
        twists = np.zeros((4, 6))
        twists[:3] = rng.normal(size=(3, 6))
        wrenches = cables.pull(twists, np.array([7.0])).copy()
        rate = cables.rates[0]
        assert -np.sum(wrenches * twists) / 7.0 == pytest.approx(rate, abs=1e-11)
        force = wrenches[:, :3].sum(axis=0)
        moment = (wrenches[:, 3:] + np.cross(poses[:, :3, 3], wrenches[:, :3])).sum(axis=0)
        assert np.abs([force, moment]).max() < 1e-12 * 7.0
        h, found, same = 1e-6, [], True
        for sign in (1, -1):
            moved = poses.copy()
            for k in range(3):
                spin = Rotation.from_rotvec(sign * h * twists[k, 3:]).as_matrix()
                moved[k, :3, :3] = spin @ poses[k, :3, :3]
                moved[k, :3, 3] += sign * h * twists[k, :3]
            found.append(cables.solve(moved)[0])
            same &= len(cables.contacts(0)) == len(contacts)
        if same:
            assert rate == pytest.approx((found[0] - found[1]) / (2 * h), abs=1e-6)
    assert seen >= 5


@pytest.mark.parametrize("steps", [1, 4, 400])
def test_no_tunnelling_of_a_thin_plate(steps):
    """A plate of 0.1 mm crosses the span at any speed."""
    plate = Box(np.array([0.5, 1e-4, 0.5]))
    cables, poses = cable_at(plate, (-1, 0, 0), (1, 0, 0))
    poses[2, :3, 3] = 0.0, 0.3, 0.0
    cables.solve(poses)
    for y in np.linspace(0.3, -0.3, steps + 1)[1:]:
        poses[2, :3, 3] = 0.0, y, 0.0
        length = cables.solve(poses)[0]
    assert length == pytest.approx(0.5 + 2 * np.hypot(0.75, 0.3), abs=1e-4)
    assert len(cables.contacts(0)) == 2


def test_a_cable_that_begins_in_a_body_comes_out_on_the_near_side():
    cables, poses = cable_at(BOX, (-1, 0.1, 0), (1, 0.1, 0))
    assert cables.solve(poses)[0] == pytest.approx(0.4 + 2 * np.hypot(0.8, 0.05), abs=1e-12)


def test_same_steps_give_the_same_bytes():
    cables, poses = cable_at(ball_of_points(), (-1, 0, 0), (1, 0, 0))

    def run():
        out = []
        for y in np.linspace(0.5, -0.2, 100):
            poses[2, :3, :3] = Rotation.from_rotvec([y, 2 * y, 0]).as_matrix()
            poses[2, :3, 3] = 0.0, y, 0.0
            out.append(cables.solve(poses)[0])
        return np.array(out).tobytes()

    first = run()
    cables.reset()
    assert run() == first


# Shapes ------------------------------------------------------------------------------------------


def test_edges_of_a_field_are_those_of_its_triangles():
    """Convex edges, by the normals of the faces, of a field of random heights."""
    rng = np.random.default_rng(7)
    grid = HeightField(rng.uniform(0.0, 0.1, (6, 7)), (1.2, 1.0))
    vertices, faces = field_triangles(grid)
    ridges = shape_tables([ContactShape(0, grid)]).ridges.reshape(-1, 3)
    sharing = {}
    for face in faces:
        for k in range(3):
            pair = tuple(sorted((face[k], face[(k + 1) % 3])))
            sharing.setdefault(pair, []).append((face, face[(k + 2) % 3]))
    found = set()
    for (a, b), sides in sharing.items():
        if len(sides) == 2:
            corners = vertices[sides[0][0]]
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            if normal @ (vertices[sides[1][1]] - vertices[a]) < 0.0:
                found.add((a, {1: 0, 7: 1, 8: 2}[b - a]))
    assert found == set(zip(*np.nonzero(ridges), strict=True))


def ended(geometry, source=None):
    link = Link("body", Inertia(1.0), collisions=(Collision("shape", geometry),))
    ends = tuple(ViaPoint("world", np.array([x, 0.0, 0.0])) for x in (-1.0, 1.0))
    joint = Joint("free", "free", "world", "body")
    return Robot("r", (link,), (joint,), (Muscle("m", ends, contact=True),), source=source)


def test_shapes_that_cannot_be_touched_are_refused_by_name(tmp_path):
    with pytest.raises(DescriptionError, match=r"link 'body'.*'shape', a ellipsoid|an ellipsoid"):
        contact_cables(ended(Ellipsoid(np.array([0.1, 0.2, 0.3]))))
    with pytest.raises(DescriptionError, match=r"mesh 'none.stl': no such file"):
        contact_cables(ended(Mesh("none.stl"), str(tmp_path / "model.sdf")))
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\n")
    with pytest.raises(DescriptionError, match="vertices lie in a plane"):
        contact_cables(ended(Mesh("flat.obj"), str(tmp_path / "model.sdf")))


def test_a_mesh_is_touched_as_its_hull(tmp_path):
    text = "".join(f"v {x} {y} {z}\n" for x in (-2, 2) for y in (-3, 3) for z in (-1, 1))
    (tmp_path / "box.obj").write_text(text)
    mesh = Mesh("box.obj", np.full(3, 0.1))
    lengths = []
    for shape in (mesh, Box(np.array([0.4, 0.6, 0.2]))):
        _, cables = contact_cables(ended(shape, str(tmp_path / "model.sdf")))
        poses = np.tile(np.eye(4), (2, 1, 1))
        for y in np.linspace(0.5, 0.2, 20):
            poses[0, 1, 3] = y
            length = cables.solve(poses)[0]
        lengths.append(length)
    assert lengths[0] == pytest.approx(lengths[1], abs=1e-12)
    assert lengths[0] > 2.0


@pytest.mark.parametrize(
    "text", ["flat", "slope:angle=10", "hills", "blocks:count=20", "stairs", "craters:extent=2"]
)
def test_terrains_are_surroundings(text):
    """On every kind the cable is nowhere in the ground."""
    terrain = read_terrain(text)
    from cards_core.robot.terrain import height_function

    ground = tuple(
        Collision(f"{i}", shape, pose) for i, (shape, pose) in enumerate(terrain.shapes())
    )
    height = height_function(terrain)
    robot = ended(Sphere(0.01))
    rng = np.random.default_rng(9)
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[0, 2, 3] = 5.0
    for _ in range(20):
        plan = rng.uniform(-0.8, 0.8, (2, 2))
        ends = np.column_stack([plan, height(*plan.T) + 0.004])
        muscle = Muscle("m", tuple(ViaPoint("world", x) for x in ends), contact=True)
        one = Robot("r", robot.links, robot.joints, (muscle,))
        _, cables = contact_cables(one, ground)
        cables.solve(poses)
        path = corners_of(cables)
        share = np.linspace(0.0, 1.0, 41)[:, None]
        for a, b in pairwise(path):
            points = a + share * (b - a)
            if text.startswith(("blocks", "stairs")):
                points = points[1:-1]
            assert np.all(points[:, 2] - height(points[:, 0], points[:, 1]) > -1e-9)
