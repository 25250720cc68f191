"""Wrap surfaces, wraps and pulleys in our plugin block: what is read and what is refused."""

import math
import struct

import numpy as np
import pytest
from sdf_documents import block, link, model

from cards_core.errors import DescriptionError
from cards_core.formats import parse_muscle_block, read_sdf, to_sdf, write_model
from cards_core.formats.sdf.muscle_path import depth_inside, inside_problem, pulley_problem
from cards_core.robot import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.spatial import Pose
from random_robots import random_geometry, random_pose

# b turns about z of a; its origin is 1 m above that of a
PAIR = (
    link("a")
    + link("b", "<pose>0 0 1 0 0 0</pose>")
    + '<joint name="base" type="fixed"><parent>world</parent><child>a</child></joint>'
    '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz>'
    "</axis></joint>"
)
BALL = '<wrap_surface name="s" link="a"><sphere radius="0.1"/></wrap_surface>\n'
EGG = '<wrap_surface name="s" link="a"><ellipsoid radii="0.1 0.2 0.3"/></wrap_surface>\n'
TUBE = '<wrap_surface name="s" link="a"><cylinder radius="0.1" length="0.4"/></wrap_surface>\n'


def muscle(path, name="m"):
    return f'<muscle name="{name}"><tension min="1" max="2"/>\n{path}</muscle>'


def via(name, point, attributes=""):
    return f'<via_point link="{name}"{attributes}>{point}</via_point>\n'


def wrap(attributes=""):
    return f'<wrap surface="s"{attributes}/>\n'


def pulley(name="a", point="0 0 0", axis="0 0 1", radius="0.1"):
    return f'<pulley link="{name}" axis="{axis}" radius="{radius}">{point}</pulley>\n'


def over(surface, *middle, start="1 0 0", end="0 0 0"):
    """A muscle from a to b with something between."""
    return surface + muscle(via("a", start) + "".join(middle) + via("b", end))


def robot_with(inside):
    return read_sdf(model(PAIR + block(inside)), name="robot.sdf")


# What is read --------------------------------------------------------------------------------


def test_every_shape():
    robot = robot_with(
        '<wrap_surface name="1" link="a" pose="0.1 0.2 0.3 0 0 1.5"><sphere radius="0.1"/>'
        '</wrap_surface><wrap_surface name="2" link="b"><cylinder radius="0.2" length="0.3"/>'
        '</wrap_surface><wrap_surface name="3" link="b"><cylinder radius="0.2"/></wrap_surface>'
        '<wrap_surface name="4" link="world"><ellipsoid radii="1 2 3"/></wrap_surface>'
        '<wrap_surface name="5" link="a"><torus radius="0.2" tube_radius="0.05"/></wrap_surface>'
        '<wrap_surface name="6" link="a"><mesh uri="x.stl" scale="1 2 3"/></wrap_surface>'
    )
    shapes = [surface.geometry for surface in robot.wrap_surfaces]
    assert shapes[0] == Sphere(0.1)
    assert shapes[1] == Cylinder(0.2, 0.3)
    assert shapes[2] == Cylinder(0.2, math.inf)
    assert isinstance(shapes[3], Ellipsoid)
    assert shapes[3].radii.tolist() == [1, 2, 3]
    assert shapes[4] == Torus(0.2, 0.05)
    assert isinstance(shapes[5], Mesh)
    assert (shapes[5].uri, shapes[5].scale.tolist()) == ("x.stl", [1, 2, 3])
    assert [surface.link for surface in robot.wrap_surfaces] == ["a", "b", "b", "world", "a", "a"]
    placed = robot.wrap_surface("1").pose
    np.testing.assert_array_equal(placed.translation, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(placed.rotation[:, 0], [math.cos(1.5), math.sin(1.5), 0])
    assert robot.wrap_surface("2").line == 1


def test_a_path_with_everything():
    inside = (
        BALL.replace('"s"', '"t"')
        + TUBE
        + muscle(
            pulley(point="0 0 2", axis="0 0 -2", radius="0.03")
            + via("a", "1 0 0", ' friction="0.2"')
            + wrap(' side="0 1 0" friction="0.1"')
            + '<wrap surface="t"/>'
            + via("a", "-1 0 0")
            + wrap(' inside="true"')
            + via("b", "0 0 0")
        ).replace('"m"', '"m" friction_speed="0.5"')
    )
    found = robot_with(inside).muscle("m")
    assert found.friction_speed == 0.5
    kinds = [type(item) for item in found.path]
    assert kinds == [Pulley, ViaPoint, Wrap, Wrap, ViaPoint, Wrap, ViaPoint]
    wheel, first, tube, ball, _, bore, last = found.path
    assert (wheel.link, wheel.radius, wheel.axis.tolist()) == ("a", 0.03, [0, 0, -1])
    assert wheel.position.tolist() == [0, 0, 2]
    assert (first.friction, last.friction) == (0.2, 0.0)
    assert (tube.surface, tube.inside, tube.friction) == ("s", False, 0.1)
    assert tube.side.tolist() == [0, 1, 0]
    assert (ball.surface, ball.side) == ("t", None)
    assert bore.inside
    lines = model(PAIR + block(inside)).splitlines()
    tags = ["<pulley", "<via_point", "<wrap", "<wrap", "<via_point", "<wrap", "<via_point"]
    for item, tag in zip(found.path, tags, strict=True):
        assert tag in lines[item.line - 1]


def test_a_muscle_may_stand_before_its_surface():
    assert robot_with(over("", wrap()) + BALL).muscle("m").path[1].surface == "s"


def test_an_unused_surface_is_fine():
    assert len(robot_with(BALL).wrap_surfaces) == 1


def test_surfaces_of_a_nested_model_get_its_prefix():
    inner = f'<model name="n"><pose>0 0 5 0 0 0</pose>{PAIR}{block(over(BALL, wrap()))}</model>'
    robot = read_sdf(model(link("a") + inner + block(BALL)))
    assert [(s.name, s.link) for s in robot.wrap_surfaces] == [("s", "a"), ("n::s", "n::a")]
    path = robot.muscle("n::m").path
    assert (path[0].link, path[1].surface, path[2].link) == ("n::a", "n::s", "n::b")
    back = read_sdf(to_sdf(robot))
    assert back.muscle("n::m").path[1].surface == "n::s"
    world = read_sdf(model(inner.replace('s" link="a"', 's" link="world"')))
    assert world.wrap_surface("n::s").link == "world"


def test_two_surfaces_of_one_full_name():
    inner = f'<model name="n">{PAIR}{block(BALL)}</model>'
    outer = block(BALL.replace('"s"', '"n::s"'))
    with pytest.raises(DescriptionError, match="an outer model has a surface 'n::s'"):
        read_sdf(model(link("a") + inner + outer))


def tetrahedron(path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(f)].ravel(), 0) for f in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)


def test_mesh_files_are_relative_to_the_model(tmp_path):
    tetrahedron(tmp_path / "bone.stl")
    surface = '<wrap_surface name="s" link="a"><mesh uri="bone.stl"/></wrap_surface>'
    (tmp_path / "model.sdf").write_text(model(PAIR + block(surface)))
    robot = read_sdf(tmp_path / "model.sdf")
    assert robot.wrap_surfaces[0].geometry.uri == str(tmp_path / "bone.stl")
    assert 'uri="bone.stl"' in write_model(robot, tmp_path).read_text()
    found = parse_muscle_block(block(surface), base=tmp_path)
    assert found.wrap_surfaces[0].geometry.uri == str(tmp_path / "bone.stl")
    (tmp_path / "model.sdf").write_text(model(PAIR + block(surface.replace("bone", "bon"))))
    with pytest.raises(DescriptionError, match=r"wrap_surface 's': 'bon\.stl' was not found"):
        read_sdf(tmp_path / "model.sdf")


# Mistakes ------------------------------------------------------------------------------------


def surface_with(shape, attributes='name="s" link="a"'):
    return f"<wrap_surface {attributes}>{shape}</wrap_surface>"


def sphere(attributes):
    return surface_with(f"<sphere {attributes}/>")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (BALL * 2, "the name is taken by the wrap_surface in line 1"),
        (surface_with('<sphere radius="1"/>', 'name="s" link="c"'),
         "wrap_surface 's': link 'c' does not exist.*a, b, world"),
        (surface_with('<sphere radius="1"/>', 'name="s"'), "has no attribute 'link'"),
        (surface_with('<sphere radius="1"/>', 'link="a"'), "has no attribute 'name'"),
        (surface_with('<sphere radius="1"/>', 'name="s" link="a" position="1 2 3"'),
         "unknown attribute 'position'.*link, name, pose"),
        (surface_with('<sphere radius="1"/>', 'name="s" link="a" pose="1 2 3"'),
         "pose: 3 values.*6 numbers x y z roll pitch yaw"),
        (surface_with('<sphere radius="1"/>', 'name="s" link="a" pose="1 2 3 0 0 nan"'),
         "pose 'nan' is not finite"),
        (surface_with(""), "holds 0 shapes.*cylinder, ellipsoid, mesh, sphere, torus"),
        (surface_with('<sphere radius="1"/><sphere radius="1"/>'), "holds 2 shapes"),
        (surface_with('<box size="1 1 1"/>'), "<box>: unknown element in wrap_surface 's'"),
        (sphere(""), "<sphere> of wrap_surface 's': has no attribute 'radius'"),
        (sphere('radius="0"'), "radius 0 m is not positive"),
        (sphere('radius="-1"'), "radius -1 m is not positive"),
        (sphere('radius="inf"'), "radius 'inf' is not finite"),
        (sphere('radius="1" length="1"'), "unknown attribute 'length'"),
        (surface_with('<cylinder radius="1" length="-1"/>'), "length -1 m is not positive"),
        (surface_with('<cylinder radius="1" length="inf"/>'), "length 'inf' is not finite"),
        (surface_with('<ellipsoid radii="1 1"/>'), "radii: 2 values.*3 numbers"),
        (surface_with('<ellipsoid radii="1 0 1"/>'), "radii that are not positive"),
        (surface_with('<ellipsoid radii="1 nan 1"/>'), "radii 'nan' is not finite"),
        (surface_with('<torus radius="0.1" tube_radius="0.1"/>'), "leave no hole"),
        (surface_with('<mesh uri="x.stl" scale="1 0 1"/>'), "a scale of zero"),
        (surface_with("<mesh/>"), "has no attribute 'uri'"),
        # wraps
        (over(BALL, '<wrap surface="t"/>'),
         "<wrap> of muscle 'm': wrap surface 't' does not exist.*: s"),
        (over("", wrap()), r"wrap surface 's' does not exist.*\(expected: none\)"),
        (over(BALL, "<wrap/>"), "has no attribute 'surface'"),
        (over(BALL, wrap(' friction="-0.1"')), r"friction -0.1 \(expected: a capstan.* 0 .. 2\)"),
        (over(BALL, wrap(' friction="20"')), r"friction 20 \(expected: a capstan.* 0 .. 2\)"),
        (over(BALL, wrap(' friction="nan"')), "friction 'nan' is not finite"),
        (
            over(BALL, wrap()).replace('<via_point link="', '<via_point friction="0.1" link="', 1),
            "friction 0.1 at the origin, where the muscle does not slide .*dry_friction",
        ),
        (over(BALL, wrap(' inside="maybe"')), "inside 'maybe' is not a boolean"),
        (over(EGG, wrap(' inside="true"')), "inside a ellipsoid.*a cylinder, a sphere or a torus"),
        (over(BALL, wrap(' side="0 0.05 0"')), "the side point is 50 mm inside the surface"),
        (over(BALL, wrap(' side="0 1"')), "side: 2 values"),
        (over(BALL, wrap(' link="a"')),
         "unknown attribute 'link'.*free_ends, friction, inside, side"),
        (over(BALL, '<wrap surface="s">0 0 0</wrap>'), "text '0 0 0' has no meaning"),
        (BALL + muscle(wrap() + via("a", "1 0 0") + via("b", "0 0 0")), "starts with a wrap"),
        (BALL + muscle(via("a", "1 0 0") + via("b", "0 0 0") + wrap()), "ends with a wrap"),
        (BALL + muscle(wrap() + via("b", "0 0 0")), "has 1 points besides wraps"),
        (BALL + muscle(wrap()), "has 0 points besides wraps"),
        (over(BALL, wrap(), start="0.06 0 0"),
         "<via_point> of muscle 'm': 40 mm inside wrap surface 's'"),
        (over(TUBE, wrap(), start="0.06 0 0.1"), "40 mm inside wrap surface 's'"),
        (over(TUBE, wrap(), start="0.06 0 0.19"), "10 mm inside wrap surface 's'"),
        (over(BALL, wrap(' free_ends="true"'), start="0.06 0 0"),
         "<via_point> of muscle 'm': 40 mm inside wrap surface 's'"),
        (over(BALL, wrap(' free_ends="1.5"')), "free_ends '1.5' is not a boolean"),
        (over(BALL, wrap(), end="0.03 0 -0.96"),
         "<via_point> of muscle 'm': at the home pose 50 mm inside wrap surface 's'"),
        (BALL + muscle(via("a", "1 0 0") + wrap() + via("a", "1 0 0")), "at the same place"),
        # pulleys
        (over("", pulley()), "a pulley after the first element"),
        (muscle(pulley()), "has 1 points besides wraps"),
        (BALL + muscle(pulley(point="1 0 0") + wrap() + via("b", "0 0 0")),
         "a wrap right after a pulley.*<via_point> between"),
        (muscle(pulley(radius="0") + via("b", "1 0 0")), "radius 0 m is not positive"),
        (muscle(pulley(axis="0 0 0") + via("b", "1 0 0")), "an axis without direction"),
        (muscle(pulley(axis="0 0") + via("b", "1 0 0")), "axis: 2 values"),
        (muscle(pulley(name="c") + via("b", "1 0 0")), "link 'c' does not exist"),
        (muscle(pulley(point="0 0") + via("b", "1 0 0")), "2 values"),
        (muscle(pulley().replace("axis", "friction")), "unknown attribute 'friction'"),
        (muscle(pulley() + via("a", "0.1 0 0.02")), "80 mm inside the wheel"),
        (muscle(pulley() + via("a", "0 0 -1")), "on the swivel axis"),
        (muscle(pulley() + via("a", "0 0 0")), "at the same place as the point before"),
        (muscle(pulley() + via("b", "0.1 0 -0.98")), "at the home pose 80 mm inside the wheel"),
        (muscle(pulley() + via("b", "0 0 1")), "at the home pose on the swivel axis"),
    ],
)  # fmt: skip
def test_mistakes_name_the_element_and_what_is_accepted(inside, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        robot_with(inside)
    assert caught.value.source == "robot.sdf"
    assert caught.value.line is not None
    assert caught.value.expected


def test_mistakes_have_the_line_of_their_element():
    text = over(BALL, wrap(' side="0 0.05 0"'))
    with pytest.raises(DescriptionError) as caught:
        robot_with(text)
    assert "side" in model(PAIR + block(text)).splitlines()[caught.value.line - 1]
    text = over(BALL, via("b", "1 0 0"), wrap(), end="0.03 0 -0.96")
    with pytest.raises(DescriptionError) as caught:
        robot_with(text)
    assert "-0.96" in model(PAIR + block(text)).splitlines()[caught.value.line - 1]


def test_home_decides_where_via_points_are():
    """The slide brings the via point into the sphere, or out of it."""
    slide = PAIR.replace("revolute", "prismatic")
    text = over(BALL, wrap(), end="0.05 0 -1")
    with pytest.raises(DescriptionError, match="at the home pose 50 mm inside"):
        read_sdf(model(slide + block(text)))
    read_sdf(model(slide + block(text + '<home joint="j">0.3</home>')))


def test_only_the_points_next_to_a_wrap_must_be_outside():
    path = via("a", "0 0 0.05") + via("a", "0.5 0 0") + wrap() + via("b", "0 0 0")
    assert len(robot_with(BALL + muscle(path)).muscles) == 1


def test_a_bore_may_hold_via_points_and_a_tube_of_a_torus_may_not():
    assert robot_with(over(TUBE, wrap(' inside="true"'), start="0.06 0 0"))
    ring = '<wrap_surface name="s" link="a"><torus radius="0.2" tube_radius="0.05"/>'
    ring += "</wrap_surface>\n"
    assert robot_with(over(ring, wrap(' inside="true"'), start="0.06 0 0"))
    with pytest.raises(DescriptionError, match="20 mm inside wrap surface"):
        robot_with(over(ring, wrap(' inside="true"'), start="0.23 0 0"))


def test_a_point_on_the_surface_is_outside():
    direction = np.array([0.3, -0.4, 0.866]) / np.linalg.norm([0.3, -0.4, 0.866])
    point = " ".join(repr(float(v)) for v in 0.1 * direction)
    assert robot_with(over(BALL, wrap(), start=point))


# Depth ---------------------------------------------------------------------------------------


def implicit(geometry, p):
    """Return a function that is negative inside, written down independently of `depth_inside`."""
    match geometry:
        case Sphere(r):
            return p @ p - r * r
        case Cylinder(r, length):
            return max(p[:2] @ p[:2] - r * r, abs(p[2]) - length / 2)
        case Ellipsoid(radii):
            return np.sum((p / radii) ** 2) - 1.0
        case Torus(big, small):
            return (p @ p + big**2 - small**2) ** 2 - 4 * big**2 * (p[:2] @ p[:2])


@pytest.mark.parametrize("kind", ["sphere", "cylinder", "ellipsoid", "torus"])
def test_depth_changes_its_sign_at_the_surface(kind):
    rng = np.random.default_rng(3)
    count = 0
    for _ in range(1500):
        surface = WrapSurface("s", "a", random_geometry(rng, kind), random_pose(rng))
        local = rng.uniform(-0.12, 0.12, 3)
        depth = depth_inside(surface, surface.pose.apply(local))
        inside = implicit(surface.geometry, local) < 0
        assert (depth > 0) == inside
        count += inside
    assert 20 < count < 1480


def test_the_hole_of_a_torus_is_inside_for_a_path_around_it_alone():
    torus = WrapSurface("s", "a", Torus(0.5, 0.1))
    hole = np.array([0.0, 0.3, 0.04])
    assert depth_inside(torus, hole, closed=True) == pytest.approx(0.06, abs=1e-14)
    assert depth_inside(torus, np.array([0.0, 0.53, 0.04]), closed=True) == pytest.approx(0.05)
    for wrap in (Wrap("s"), Wrap("s", side=np.array([0.0, 0.7, 0.0]))):
        assert "60 mm inside wrap surface 's'" in inside_problem(wrap, torus, hole)[0]
    for wrap in (Wrap("s", inside=True), Wrap("s", side=np.array([0.0, 0.3, 0.0]))):
        assert inside_problem(wrap, torus, hole) is None


def test_depth_is_a_distance():
    place = Pose(translation=np.array([1.0, 2.0, 3.0]))
    for geometry, point, expected in (
        (Sphere(0.1), (0.03, 0.04, 0), 0.05),
        (Cylinder(0.1, math.inf), (0.03, 0.04, 7), 0.05),
        (Cylinder(0.1, 0.2), (0.0, 0.0, 0.09), 0.01),
        (Cylinder(0.1, 0.2), (0.0, 0.0, 0.15), -0.05),
        (Ellipsoid(np.array([0.1, 0.2, 0.3])), (0, 0.05, 0), 0.15),
        (Ellipsoid(np.array([0.1, 0.2, 0.3])), (0, 0, 0), 0.1),
        (Torus(0.5, 0.1), (0, 0.53, 0.04), 0.05),
    ):
        surface = WrapSurface("s", "a", geometry, place)
        point = np.array(point) + place.translation
        assert depth_inside(surface, point) == pytest.approx(expected, abs=1e-14)


def test_a_pulley_accepts_exactly_the_points_outside_its_wheel():
    """The wheel is the circle of the radius that touches the axis at the pulley's point."""
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(500):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        wheel = Pulley("a", rng.normal(size=3), axis, 0.1)
        point = wheel.position + rng.uniform(-0.3, 0.3, 3)
        normal = np.cross(axis, point - wheel.position)
        towards = np.cross(normal, axis)
        centre = wheel.position + 0.1 * towards / np.linalg.norm(towards)
        problem = pulley_problem(wheel, point)
        assert (problem is not None) == (np.linalg.norm(point - centre) < 0.1)
        refused += problem is not None
    assert 10 < refused < 490
