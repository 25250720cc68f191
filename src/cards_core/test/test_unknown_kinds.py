"""A kind that nobody has taught the core gives an error that names the known ones: no guesses."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from cards_core.analysis.interference.distances import bodies_of
from cards_core.analysis.stiffness import muscle_stiffness
from cards_core.codegen.model import Variant
from cards_core.dynamics import make_dynamics
from cards_core.dynamics.sympy_backend.options import SymbolicOptions
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.formats.sdf.writer import to_sdf
from cards_core.formats.urdf.writer import to_urdf
from cards_core.muscles.actuators import springs
from cards_core.muscles.actuators.bank import ActuatorBank
from cards_core.muscles.actuators.groups import model_type
from cards_core.muscles.command import MuscleCommand
from cards_core.muscles.engine import MuscleEngine
from cards_core.paths.layout import link_layout
from cards_core.paths.wrapping.contact_guesses import contact_guesses, reference_ellipsoid
from cards_core.paths.wrapping.surfaces import Surface
from cards_core.robot.actuators import ACTUATORS, Cable, Spring
from cards_core.robot.elements import (
    AXES_PER_KIND,
    WORLD,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
    Visual,
    Wrap,
    WrapSurface,
)
from cards_core.robot.joint_coordinates import joint_position, joint_velocity
from cards_core.robot.model import Node, Robot
from cards_core.spatial import Pose
from cards_core.trajectories.polynomial import PiecewisePolynomial
from cards_core.trajectories.rotation import euler_matrix

X = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True, kw_only=True)
class ShapeMemory(Cable):
    """A kind of actuator without a model."""

    kind = "shape_memory"
    commands = ("temperature",)

    @property
    def accepted_commands(self):
        """See the base class."""
        return self.commands


@dataclass(frozen=True)
class Cone:
    """A geometry that nothing draws and no muscle wraps over."""

    radius: float = 0.1
    length: float = 0.2


@dataclass(frozen=True)
class Hook:
    """A path element that no path has."""

    link: str = "arm"
    line: int | None = None


class ConeSurface(Surface):
    """A surface without a reference ellipsoid."""

    step = 0.1
    size = 0.1

    def height(self, x):
        return float(np.linalg.norm(x)) - 0.1

    cover = height

    def project(self, x):
        return x

    def normal(self, x):
        return x / np.linalg.norm(x)

    def curvature(self, x, t):
        return self.normal(x), 1.0, 0.0, 1.0


def robot(**changes):
    arm = Link("arm", Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)))
    joint = Joint("hinge", "revolute", WORLD, "arm", axes=(JointAxis(X),))
    path = (ViaPoint(WORLD, np.array([0.0, 0.3, 0.5])), ViaPoint("arm", np.array([0.0, 0.3, 0.0])))
    muscle = Muscle("m", path, 1.0, 100.0)
    return Robot(
        **({"name": "r", "links": (arm,), "joints": (joint,), "muscles": (muscle,)} | changes)
    )


def with_actuator(actuator):
    return robot(muscles=(replace(robot().muscles[0], actuator=actuator),))


def with_wrap(geometry):
    start, end = robot().muscles[0].path
    muscle = Muscle("m", (start, Wrap("surface"), end))
    surface = WrapSurface("surface", "arm", geometry)
    return robot(muscles=(muscle,), wrap_surfaces=(surface,))


def with_visual(geometry):
    link = replace(robot().links[0], visuals=(Visual("shape", geometry),))
    return robot(links=(link,))


def names(known):
    return "Known: " + ", ".join(known)


GEOMETRIES = ("Box", "Sphere", "Cylinder", "Capsule", "Ellipsoid", "Plane", "Mesh")
WRAPPED = ("Sphere", "Cylinder", "Ellipsoid", "Torus", "Mesh")
ELEMENTS = ("ViaPoint", "Wrap", "Pulley")


def test_the_robot_of_these_tests_is_valid_without_its_unknown_part():
    plain = robot()
    assert plain.tree.nq == 1
    assert ActuatorBank(plain, 1e-3, "numeric").ideal
    assert to_sdf(plain)
    assert to_urdf(plain)
    assert to_mjcf(plain)


@pytest.mark.parametrize(
    "use",
    [
        lambda: model_type(ShapeMemory()),
        lambda: ActuatorBank(with_actuator(ShapeMemory()), 1e-3, "numeric"),
        lambda: muscle_stiffness(with_actuator(ShapeMemory()), np.ones(1), np.ones(1)),
    ],
)
def test_an_unknown_actuator(use):
    with pytest.raises(UnknownNameError, match="shape_memory") as caught:
        use()
    assert set(caught.value.known) == set(ACTUATORS)


def test_an_unknown_kind_of_command():
    with pytest.raises(UnknownNameError, match=r"muscle 'm'.*'temperature'.*Known: force, length"):
        MuscleCommand(with_actuator(ShapeMemory()), timeout=1.0)
    gate = MuscleCommand(robot(), timeout=1.0)
    with pytest.raises(UnknownNameError, match=r"'temperature'.*Known: force, length, pressure"):
        gate.submit(["m"], [1.0], 0.0, kind="temperature")
    assert gate.accepted == 0


def test_a_pressure_for_what_has_none():
    class Inflated(Cable):
        @property
        def accepted_commands(self):
            return ("pressure",)

    with pytest.raises(UnknownNameError, match=r"pressure limit of muscle 'm'.*Known: pneumatic"):
        MuscleCommand(with_actuator(Inflated()), timeout=1.0)


def test_an_unknown_law_of_a_spring():
    with pytest.raises(UnknownNameError, match=names(("polynomial", "exponential", "triangle"))):
        springs.parameters(Spring(law="cubic", stiffness=1.0))


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_an_unknown_wrap_surface(backend):
    with pytest.raises(UnknownNameError, match="'Cone'.*" + names(WRAPPED)):
        MuscleEngine(with_wrap(Cone()), backend)


@pytest.mark.parametrize("write", [to_sdf, lambda r: to_mjcf(r, tendons=True)])
def test_an_unknown_wrap_surface_is_not_written(write):
    with pytest.raises(UnknownNameError, match="'Cone'.*" + names(WRAPPED)):
        write(with_wrap(Cone()))


def test_an_unknown_surface_of_geodesics():
    known = names(("EllipsoidSurface", "CylinderSurface", "TorusSurface", "HullSurface"))
    with pytest.raises(UnknownNameError, match="'ConeSurface'.*" + known):
        reference_ellipsoid(ConeSurface())
    with pytest.raises(UnknownNameError, match="'ConeSurface'.*" + known):
        contact_guesses(ConeSurface(), -X, X, None)


@pytest.mark.parametrize(
    "use", [to_sdf, to_urdf, to_mjcf, lambda r: bodies_of(r, "visuals", "hull")]
)
def test_an_unknown_geometry(use):
    with pytest.raises(UnknownNameError, match="'Cone'.*" + names(GEOMETRIES)):
        use(with_visual(Cone()))


def test_an_unknown_joint():
    screw = Joint("lead", "screw", WORLD, "arm", axes=(JointAxis(X),), line=7)
    with pytest.raises(DescriptionError, match=r":7: joint 'lead': 'screw' is no kind") as caught:
        robot(joints=(screw,)).tree  # noqa: B018
    assert caught.value.expected == ", ".join(AXES_PER_KIND)
    poses = np.eye(4), np.eye(4)
    with pytest.raises(UnknownNameError, match="'screw'.*" + names(AXES_PER_KIND)):
        joint_position(screw, *poses)
    with pytest.raises(UnknownNameError, match="'screw'.*" + names(AXES_PER_KIND)):
        joint_velocity(screw, *poses, np.zeros(6), np.zeros(6))
    with pytest.raises(UnknownNameError, match=names(("revolute", "prismatic", "ball"))):
        Node("lead", "screw", -1, Pose(), X, Inertia(), 0, 0)


def test_an_unknown_path_element():
    start, end = robot().muscles[0].path
    odd = robot(muscles=(Muscle("m", (start, Hook(), end)),))
    with pytest.raises(UnknownNameError, match="'Hook'.*" + names(ELEMENTS)):
        odd.tree  # noqa: B018
    with pytest.raises(UnknownNameError, match="'Hook'.*" + names(ELEMENTS)):
        link_layout(odd)


@pytest.mark.parametrize(
    "use",
    [
        lambda: make_dynamics(robot(), "native"),
        lambda: MuscleEngine(robot(), "native"),
        lambda: ActuatorBank(robot(), 1e-3, "native"),
    ],
)
def test_an_unknown_backend(use):
    with pytest.raises(UnknownNameError, match="'native'.*" + names(("compiled", "numeric"))):
        use()


@pytest.mark.parametrize(
    ("use", "known"),
    [
        (lambda: to_mjcf(robot(), integrator="RK4"), "Euler, implicit, implicitfast"),
        (lambda: Variant("half"), "double, single"),
        (lambda: SymbolicOptions(parameters="letters"), "numbers, symbols"),
        (lambda: SymbolicOptions(simplification="some"), "none, trig, full"),
        (lambda: SymbolicOptions(muscles="some"), "all, straight, none"),
        (lambda: SymbolicOptions(constants="octal"), "decimal, binary"),
        (lambda: bodies_of(robot(), "all", "hull"), "collisions, visuals, either"),
        (lambda: bodies_of(robot(), "visuals", "keep"), "hull, skip"),
        (lambda: euler_matrix(np.zeros(3), "zyx"), "'euler_xyz', 'fixed_xyz'"),
        (lambda: PiecewisePolynomial([0.0, 1.0], np.zeros((1, 1, 1)), side="up"), "left or right"),
    ],
)
def test_an_unknown_choice(use, known):
    with pytest.raises(CardsError, match=known):
        use()
