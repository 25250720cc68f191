"""The condition: which pairs count, what it says about bad points, and always the same."""

import dataclasses
import math
import threading
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.interference import Interference, InterferenceOptions
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.elements import (
    WORLD,
    Box,
    Collision,
    Cylinder,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Plane,
    Sphere,
    ViaPoint,
    Visual,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from random_robots import random_robot

X, Y, Z = np.eye(3)
BODY = Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))


def slider(muscles, *, collisions=(), visuals=(), surfaces=(), more=()) -> Robot:
    """A block that slides along x, and what hangs on it."""
    link = Link("block", BODY, visuals=visuals, collisions=collisions)
    joint = Joint("slide", "prismatic", WORLD, "block", axes=(JointAxis(X),))
    links, joints = [link], [joint]
    for extra_link, extra_joint in more:
        links.append(extra_link)
        joints.append(extra_joint)
    return Robot(
        "slider", tuple(links), tuple(joints), tuple(muscles), wrap_surfaces=tuple(surfaces)
    )


def muscle(name, *points, **options) -> Muscle:
    """A muscle through (link, x, y, z) or other elements."""
    path = tuple(ViaPoint(p[0], np.array(p[1:], float)) if isinstance(p, tuple) else p
                 for p in points)  # fmt: skip
    return Muscle(name, path, 0.0, 100.0, **options)


def at(robot, q=0.0, **options):
    """Distance, the pair's names, and status at one coordinate."""
    condition = Interference(make_dynamics(robot, "numeric"), InterferenceOptions(**options))
    out = condition.evaluate(np.array([[q]]))
    name = condition.pair_name(int(out["muscle"][0]), int(out["other"][0]))
    return float(out["distance"][0]), name, PointStatus(out["status"][0])


# Muscles with muscles -------------------------------------------------------------------------

LEFT = muscle("left", (WORLD, -1, 0, 0), ("block", 0, 0, 0))
ABOVE = muscle("above", (WORLD, -1, 0, 0.3), (WORLD, 1, 0, 0.3))


def test_distance_of_two_muscles_and_their_diameters():
    robot = slider([LEFT, ABOVE])
    assert at(robot) == (pytest.approx(0.3, abs=1e-15), "left - above", PointStatus.FEASIBLE)
    assert at(robot, diameter=0.01)[0] == pytest.approx(0.29, abs=1e-15)
    assert at(robot, diameters=[0.01, 0.03])[0] == pytest.approx(0.28, abs=1e-15)
    assert at(robot, min_distance=0.31)[2] == PointStatus.INFEASIBLE
    assert at(robot, diameter=0.4)[0] == pytest.approx(-0.1, abs=1e-15)
    assert at(robot, diameter=0.4)[2] == PointStatus.INFEASIBLE
    assert at(robot, pairs="links") == (math.inf, "none", PointStatus.FEASIBLE)


def test_touching_is_interference():
    across = muscle("across", (WORLD, -0.5, -1, 0), (WORLD, -0.5, 1, 0))
    assert at(slider([LEFT, across]))[0] == 0.0
    assert at(slider([LEFT, across]))[2] == PointStatus.INFEASIBLE


def test_muscles_that_share_an_attachment_point_are_not_compared():
    other = muscle("other", (WORLD, -1, 1, 0), ("block", 0, 0, 0))
    assert at(slider([LEFT, other]))[0] == math.inf
    # a little beside it they are, at full length unless told otherwise
    beside = muscle("beside", (WORLD, -1, 1, 0), ("block", 0, 0.001, 0))
    assert at(slider([LEFT, beside]))[0] == pytest.approx(0.001, abs=1e-12)
    # cut off, the ends at the block are those of 10 cm less
    cut = at(slider([LEFT, beside]), shared_body_clearance=0.1)[0]
    end = 0.001 * Y + 0.1 * np.array([-1, 0.999, 0]) / math.hypot(1, 0.999)
    assert cut == pytest.approx(math.hypot(end[0] + 0.1, end[1]), abs=1e-12)


def test_a_shared_point_is_found_on_links_that_are_fixed_to_each_other():
    plate = Link("plate", BODY)
    fixed = Joint("weld", "fixed", "block", "plate", parent_to_joint=Pose(np.eye(3), 0.1 * Z))
    other = muscle("other", (WORLD, -1, 1, 0), ("plate", 0, 0, -0.1))
    robot = slider([LEFT, other], more=[(plate, fixed)])
    assert at(robot)[0] == math.inf


def test_distances_that_never_change_do_not_count():
    first = muscle("first", ("block", 0, 0, 0), ("block", 1, 0, 0))
    second = muscle("second", ("block", 0, 1e-3, 0), ("block", 1, 1e-3, 0))
    assert at(slider([first, second]))[0] == math.inf


def test_pieces_of_one_muscle_are_not_compared():
    zigzag = muscle("zigzag", (WORLD, -1, 0, 0), ("block", 0, 0, 0), (WORLD, -1, 1e-3, 0))
    assert at(slider([zigzag]))[0] == math.inf


def test_ignored_pairs():
    assert at(slider([LEFT, ABOVE]), ignore=["above:left"])[0] == math.inf
    ball = (Collision("ball", Sphere(0.05), Pose(np.eye(3), 0.2 * Z)),)
    robot = slider([LEFT, ABOVE], collisions=ball)
    assert at(robot)[1] == "above - block/ball"
    assert at(robot, ignore=["above:block"])[1] == "left - block/ball"
    assert at(robot, ignore=["above:block", "left:block"])[1] == "left - above"
    with pytest.raises(UnknownNameError, match="did you mean 'left'"):
        at(robot, ignore=["lft:above"])
    with pytest.raises(UnknownNameError, match="muscle or link named 'nobody'"):
        at(robot, ignore=["left:nobody"])
    with pytest.raises(ConditionError, match="two different names"):
        at(robot, ignore=["left:left"])
    with pytest.raises(ConditionError, match="muscle:muscle"):
        at(robot, ignore=["left"])
    with pytest.raises(ConditionError, match="one for each of the 2 muscles"):
        at(robot, diameters=[0.1])
    with pytest.raises(ParameterError, match="min_distance"):
        at(robot, min_distance=-0.1)


# Muscles with links ---------------------------------------------------------------------------


def test_shapes_of_links():
    ball = (Collision("ball", Sphere(0.1)),)
    drawn = (Visual("drawn", Box(np.array([0.2, 0.2, 0.5]))),)
    robot = slider([ABOVE], collisions=ball, visuals=drawn)
    assert at(robot)[:2] == (pytest.approx(0.2, abs=1e-12), "above - block/ball")
    assert at(robot, shapes="visuals")[:2] == (
        pytest.approx(0.05, abs=1e-10),
        "above - block/drawn",
    )
    assert at(robot, shapes="either")[0] == pytest.approx(0.2, abs=1e-12)
    robot = slider([ABOVE], visuals=drawn)
    assert at(robot)[0] == math.inf
    assert at(robot, shapes="either")[0] == pytest.approx(0.05, abs=1e-10)


def test_penetration_is_never_positive():
    box = (Collision("box", Box(np.array([0.2, 0.2, 1.0]))),)
    for q in (0.0, 0.9, 1.0):
        distance, _, status = at(slider([ABOVE], collisions=box), q, diameter=0.01)
        assert (distance, status) == (-0.005, PointStatus.INFEASIBLE)
    assert at(slider([ABOVE], collisions=box), 1.2)[0] == pytest.approx(0.1, abs=1e-10)


def test_a_plane_is_a_half_space():
    ground = Link("ground", BODY, collisions=(Collision("floor", Plane(Z)),))
    fixed = Joint("weld", "fixed", WORLD, "ground")
    hangs = muscle("hangs", (WORLD, 0, 5, 1), ("block", 0, 0, 0.3))
    sags = muscle("sags", (WORLD, 0, -5, 1), ("block", 0, 0, -0.1))
    assert at(slider([hangs], more=[(ground, fixed)]))[0] == pytest.approx(0.3, abs=1e-15)
    assert at(slider([hangs, sags], more=[(ground, fixed)]))[0] == pytest.approx(-0.1, abs=1e-15)


def test_what_is_fixed_to_the_world_is_an_obstacle_unless_a_muscle_is_attached_to_it():
    post = Collision("post", Cylinder(0.1, 1.0), Pose(np.eye(3), np.array([-1.0, 0, 0])))
    other = Collision("other", Sphere(0.1), Pose(np.eye(3), np.array([-0.5, 0.15, 0])))
    frame = Link("frame", BODY, collisions=(post, other))
    fixed = Joint("weld", "fixed", WORLD, "frame")
    from_post = muscle("from_post", (WORLD, -0.9, 0, 0), ("block", 0, 0, 0))
    robot = slider([from_post], more=[(frame, fixed)])
    assert at(robot)[:2] == (pytest.approx(0.05, abs=1e-12), "from_post - frame/other")
    assert at(robot, min_distance=0.06)[2] == PointStatus.INFEASIBLE
    # from the axis of the post it would have to leave through its wall
    inside = muscle("inside", (WORLD, -1, 0, 0), ("block", 0, 0, 0))
    assert at(slider([inside], more=[(frame, fixed)]))[:2] == (0.0, "inside - frame/post")
    # 3 cm beside the post is not attached to it
    beside = muscle("beside", (WORLD, -0.87, 0, 0), ("block", 0, 0, 0.5))
    found = at(slider([beside], more=[(frame, fixed)]), ignore=[])
    assert found[:2] == (pytest.approx(0.03, abs=1e-10), "beside - frame/post")
    assert at(slider([beside], more=[(frame, fixed)]), attachment_clearance=0.04)[1] != found[1]


def test_a_muscle_must_leave_its_own_body():
    """It touches it at the end; what counts is whether the rest is in it."""
    box = (Collision("box", Box(np.array([0.2, 0.2, 0.2]))),)
    up = muscle("up", (WORLD, -1.1, 0, 0), ("block", -0.1, 0, 0))  # at right angles from a face
    robot = slider([up], collisions=box)
    assert at(robot) == (math.inf, "none", PointStatus.FEASIBLE)
    assert at(robot, min_distance=0.5)[2] == PointStatus.FEASIBLE
    # a clearance of nothing: the attachment itself touches; a thick one reaches back to the face
    assert at(robot, attachment_clearance=0.0)[::2] == (0.0, PointStatus.INFEASIBLE)
    assert at(robot, diameter=0.03)[2] == PointStatus.FEASIBLE
    thick = at(robot, diameter=0.05)
    assert thick == (pytest.approx(-0.005, abs=1e-10), "up - block/box", PointStatus.INFEASIBLE)
    # through the box from the far side, or along a face
    for end in (0.1, 0.0, -0.1), (-0.1, 0.1, 0.1):
        path = [(WORLD, -1.1, 0, 0.1 * (end[1] > 0)), ("block", *end)]
        path = path if end[1] <= 0 else [(WORLD, -0.1, -1, 0.1), ("block", *end)]
        through = slider([muscle("through", *path)], collisions=box)
        assert at(through)[::2] == (0.0, PointStatus.INFEASIBLE)
        assert at(through, own_shapes=False)[0] == math.inf
    # moved until nothing of the piece is left
    assert at(robot, q=-0.99, diameter=0.05)[0] == math.inf


def test_own_bodies_are_those_that_move_together():
    """The box is on a link that is welded to the one with the attachment."""
    plate = Link("plate", BODY, collisions=(Collision("box", Box(np.array([0.2, 0.2, 0.2]))),))
    fixed = Joint("weld", "fixed", "block", "plate")
    up = muscle("up", (WORLD, -1.1, 0, 0), ("block", -0.1, 0, 0))
    assert at(slider([up], more=[(plate, fixed)]))[0] == math.inf
    # on a link that moves by itself it is another body, which the end touches
    loose = Joint("hinge", "revolute", "block", "plate", axes=(JointAxis(X),))
    condition = Interference(make_dynamics(slider([up], more=[(plate, loose)]), "numeric"))
    assert condition.evaluate(np.zeros((1, 2)))["status"] == PointStatus.INFEASIBLE


def test_a_piece_with_both_ends_on_a_body_is_not_compared_with_it():
    box = (Collision("box", Box(np.array([0.2, 0.2, 0.2]))),)
    along = muscle("along", ("block", -0.1, 0, 0), ("block", 0.1, 0, 0), (WORLD, 1, 0, 0))
    assert at(slider([along], collisions=box)) == (math.inf, "none", PointStatus.FEASIBLE)


def test_a_muscle_slides_on_its_wrap_surface():
    surface = WrapSurface("roll", "block", Sphere(0.1))
    bone = (Collision("bone", Sphere(0.1)),)
    path = ((WORLD, -1, 0, 0.05), Wrap("roll", side=np.array([0, 0, 0.2])), (WORLD, 1, 0, 0.05))
    robot = slider([muscle("over", *path)], collisions=bone, surfaces=[surface])
    found = Interference(make_dynamics(robot, "numeric")).evaluate(np.zeros((1, 1)))
    assert found["distance"].tolist() == [np.inf]  # nothing is compared
    # a shape of another link, here one that is welded on, is an obstacle all the same
    cuff = Link("cuff", BODY, collisions=(Collision("cuff", Sphere(0.1)),))
    welded = slider(
        [muscle("over", *path)],
        surfaces=[surface],
        more=[(cuff, Joint("weld", "fixed", "block", "cuff"))],
    )
    assert at(welded)[0] == pytest.approx(0.0, abs=1e-12)
    # without the wrap the same muscle goes through the bone
    straight = slider([muscle("through", path[0], path[2])], collisions=bone)
    assert at(straight)[0] == pytest.approx(-0.05, abs=1e-12)
    # another muscle above the arc is compared with the straight pieces only
    probe = muscle("probe", (WORLD, -0.5, -1, 0.2), (WORLD, -0.5, 1, 0.2))
    robot = slider([muscle("over", *path), probe], surfaces=[surface])
    points = MuscleEngine(robot, "numeric").path_points(np.eye(4)[None])[0]
    a, b = points[0], points[1]
    height = a[2] + (b[2] - a[2]) * (-0.5 - a[0]) / (b[0] - a[0])
    cosine = (b[0] - a[0]) / np.linalg.norm(b - a)
    assert at(robot)[:2] == (pytest.approx((0.2 - height) * cosine, abs=1e-12), "over - probe")


# Whole robots ---------------------------------------------------------------------------------


def slow(robot, poses) -> float:
    """Smallest distance of two muscles from their drawn paths; straight muscles only."""
    paths = MuscleEngine(robot, "numeric").path_points(poses)
    best = math.inf
    for i, a in enumerate(paths):
        for b in paths[:i]:
            for p in pairwise(a):
                for r in pairwise(b):
                    matrix = np.stack([p[1] - p[0], r[0] - r[1]], axis=1)
                    found = lsq_linear(matrix, r[0] - p[0], (0, 1), method="bvls", tol=1e-14)
                    best = min(best, math.sqrt(2.0 * found.cost))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_random_robots_against_minimisation(seed):
    """No two attachments of different muscles coincide, and no muscle lies on one link."""
    robot = random_robot(seed, n_muscles=4)
    names = [link.name for link in robot.links]
    muscles = tuple(
        dataclasses.replace(
            m,
            path=tuple(
                dataclasses.replace(p, link=WORLD if k % 2 else names[(i + k) % len(names)])
                for k, p in enumerate(m.path)
            ),
        )
        for i, m in enumerate(robot.muscles)
    )
    robot = dataclasses.replace(robot, muscles=muscles)
    dynamics = make_dynamics(robot, "numeric")
    # of pieces on one body the distance never changes: here links welded together have none
    condition = Interference(dynamics)
    rng = np.random.default_rng(seed)
    q = np.array([dynamics.tree.random(rng) for _ in range(10)])
    found = condition.evaluate(q)["distance"]
    expected = [slow(robot, dynamics.link_poses(row).copy()) for row in q]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def straight_pieces(robot, poses, drawn_arc=9):
    """Muscle, ends, and the links of both ends, taken from the drawn paths without their arcs."""
    surfaces = {surface.name: surface.link for surface in robot.wrap_surfaces}
    out = []
    for i, path in enumerate(MuscleEngine(robot, "numeric").path_points(poses)):
        last, k = None, 0
        for element in robot.muscles[i].path:
            link = surfaces[element.surface] if isinstance(element, Wrap) else element.link
            count = 1 if isinstance(element, ViaPoint) else drawn_arc
            if last is not None:
                out.append((i, path[k - 1 : k + 1], {last, link}))
            last, k = link, k + count
        assert k == len(path)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_robots_that_wrap_against_their_drawn_paths(seed):
    """No joint is fixed, so that every link is a rigid body of its own."""
    robot = random_robot(
        seed,
        n_links=3,
        n_muscles=3,
        kinds=("revolute", "ball", "prismatic"),
        surfaces=("sphere", "cylinder", "ellipsoid"),
        pulleys=True,
        chains=seed % 2 == 1,
    )
    dynamics = make_dynamics(robot, "numeric")
    condition = Interference(dynamics)
    rng = np.random.default_rng(seed)
    tree = dynamics.tree
    steps = 0.05 * rng.normal(size=(5, tree.nv))
    q = np.array([tree.integrate(tree.home, step) for step in steps])
    out = condition.evaluate(q)
    for k, row in enumerate(q):
        pieces = straight_pieces(robot, dynamics.link_poses(row).copy())
        best = math.inf
        for i, a, links in pieces:
            for j, b, others in pieces:
                if i < j and len(links | others) > 1:
                    matrix = np.stack([a[1] - a[0], b[0] - b[1]], axis=1)
                    found = lsq_linear(matrix, b[0] - a[0], (0, 1), method="bvls", tol=1e-14)
                    best = min(best, math.sqrt(2.0 * found.cost))
        assert out["status"][k] != PointStatus.PATH_NOT_FOUND
        # contacts are found to 1e-9 m
        assert out["distance"][k] == pytest.approx(best, abs=1e-8)


def test_order_of_muscles_does_not_matter():
    robot = load("roboy_arm")
    turned = dataclasses.replace(robot, muscles=robot.muscles[::-1])
    rng = np.random.default_rng(0)
    dynamics = make_dynamics(robot)
    q = np.array([dynamics.tree.random(rng) for _ in range(50)])
    first = Interference(dynamics)
    second = Interference(make_dynamics(turned))
    a, b = first.evaluate(q), second.evaluate(q)
    np.testing.assert_allclose(a["distance"], b["distance"], rtol=0, atol=1e-12)
    names = [
        [
            frozenset((c.others[i], c.others[j]))
            for i, j in zip(o["muscle"], o["other"], strict=True)
        ]
        for c, o in ((first, a), (second, b))
    ]
    assert names[0] == names[1]


def test_a_moved_robot_has_the_same_distances():
    robot = load("ipanema_1")
    rng = np.random.default_rng(1)
    dynamics = make_dynamics(robot)
    q = np.array([dynamics.tree.random(rng) for _ in range(50)])
    place = Pose(dynamics.link_poses(q[0])[-1][:3, :3].copy(), np.array([3.0, -2.0, 7.0]))

    def moved(joint):
        if joint.parent != WORLD:
            return joint
        return dataclasses.replace(joint, parent_to_joint=place @ joint.parent_to_joint)

    def point(p):
        return dataclasses.replace(p, position=place.apply(p.position)) if p.link == WORLD else p

    other = dataclasses.replace(
        robot,
        joints=tuple(moved(joint) for joint in robot.joints),
        muscles=tuple(
            dataclasses.replace(m, path=tuple(point(p) for p in m.path)) for m in robot.muscles
        ),
    )
    a = Interference(dynamics).evaluate(q)["distance"]
    b = Interference(make_dynamics(other)).evaluate(q)["distance"]
    # some 1e-11 of the size of the frame, where the iteration over a box stops
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
    assert np.ptp(a) > 1e-3


# Bad points, and the protocol -----------------------------------------------------------------


def test_bad_points_have_a_status_and_leave_the_others_alone():
    robot = random_robot(3, n_muscles=6, kinds=("ball",))
    dynamics = make_dynamics(robot, "numeric")
    rng = np.random.default_rng(2)
    q = np.array([dynamics.tree.random(rng) for _ in range(8)])
    condition = Interference(dynamics)
    good = condition.evaluate(q)
    bad = q.copy()
    bad[1, 0] = np.nan
    bad[3, 2] = np.inf
    ball = next(node.q for node in dynamics.tree.nodes if node.kind == "ball")
    bad[5, ball : ball + 4] = 0.0
    out = condition.evaluate(bad)
    wrong = np.array([1, 3, 5])
    assert (out["status"][wrong] == PointStatus.NOT_FINITE).all()
    assert np.isnan(out["distance"][wrong]).all()
    assert (out["muscle"][wrong] == -1).all()
    rest = np.setdiff1d(np.arange(8), wrong)
    for name, values in good.items():
        np.testing.assert_array_equal(out[name][rest], values[rest])


def test_wrapped_muscles_with_bad_points():
    dynamics = make_dynamics(load("wrap_elbow"))
    out = Interference(dynamics).evaluate(np.array([[1.0], [np.nan], [0.5]]))
    assert list(out["status"][[1]]) == [PointStatus.NOT_FINITE]
    assert np.isfinite(out["distance"][[0, 2]]).all()


def test_robots_without_muscles_and_with_one():
    block = (Collision("box", Cylinder(0.1, 0.1)),)
    out = Interference(make_dynamics(slider([], collisions=block), "numeric")).evaluate(
        np.zeros((2, 1))
    )
    assert (out["status"] == PointStatus.NO_MUSCLES).all()
    assert np.isnan(out["distance"]).all()
    assert at(slider([LEFT])) == (math.inf, "none", PointStatus.FEASIBLE)


def test_columns_are_what_evaluate_returns():
    condition = Interference(make_dynamics(load("planar_2r")))
    out = condition.evaluate(np.zeros((0, 2)))
    assert list(out) == [column.name for column in condition.columns]
    out = condition.evaluate(np.zeros((3, 2)))
    for column in condition.columns:
        assert out[column.name].dtype == column.dtype
        assert out[column.name].shape == (3,)
    with pytest.raises(ShapeError, match="expected: \\(n, 2\\)"):
        condition.evaluate(np.zeros((3, 4)))


@pytest.mark.parametrize("name", ["roboy_arm", "wrap_elbow"])
def test_an_answer_does_not_depend_on_the_points_before_it(name):
    """Bytes of results must be equal however a job was cut into pieces."""
    dynamics = make_dynamics(load(name))
    rng = np.random.default_rng(3)
    q = np.array([dynamics.tree.random(rng) for _ in range(60)])
    whole = Interference(dynamics).evaluate(q)
    order = rng.permutation(len(q))
    parts = Interference(make_dynamics(load(name)))
    for i in order:
        one = parts.evaluate(q[i : i + 1])
        for column, values in whole.items():
            np.testing.assert_array_equal(one[column], values[i : i + 1])


def test_threads_with_an_object_each():
    robot = load("ipanema_1")
    dynamics = make_dynamics(robot)
    rng = np.random.default_rng(4)
    q = np.array([dynamics.tree.random(rng) for _ in range(3000)])
    expected = Interference(dynamics).evaluate(q)["distance"]
    found = [None] * 4
    conditions = [Interference(make_dynamics(robot)) for _ in found]

    def work(i):
        found[i] = conditions[i].evaluate(q)["distance"]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values in found:
        np.testing.assert_array_equal(values, expected)
