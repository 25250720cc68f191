"""OpenSim models of our own, beside what OpenSim 4.6 said of them and beside a taut string."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import opensim_samples as samples
import pytest
from opensim_numbers import OPENSIM
from taut_string import taut_length

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.imports.model import write_imported
from cards_core.formats.opensim import functions, joint_reading, muscles, path_reading, reading
from cards_core.formats.opensim.compare import ACTIVATIONS, fiber_equilibrium, measure
from cards_core.formats.opensim.importer import UPRIGHT, import_osim, our_coordinates
from cards_core.formats.opensim.kinematics import (
    body_poses,
    free_coordinates,
    inertia_along,
    length,
    polyline,
    values,
)
from cards_core.formats.opensim.schema import CONTENT
from cards_core.formats.opensim.wraps import all_poses, coordinate_range
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.bank import ActuatorBank
from cards_core.muscles.actuators.hill import curves_of
from cards_core.muscles.command import FORCE
from cards_core.robot.actuators import Hill, Ligament
from cards_core.robot.forward_kinematics import node_poses
from cards_core.robot.motors import motors_of

NAMES = ("arm", "knee", "shoulder", "old_arm")


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("osim")
    found = {}
    for name in NAMES:
        path = folder / f"{name}.osim"
        path.write_text(getattr(samples, name)())
        found[name] = import_osim(path)
    return found


@pytest.fixture(scope="module")
def dynamics(imported):
    return {name: make_dynamics(found.model.robot) for name, found in imported.items()}


def state_at(found, dynamics, free):
    robot = found.model.robot
    q = our_coordinates(robot, found.coordinates, values(found.source, free))
    state = dynamics.update(q, np.zeros(robot.tree.nv))
    return state.muscle_lengths.copy(), np.array(state.muscle_jacobian)


def exact(found, name):
    return not found.paths[name].reasons


@pytest.mark.parametrize("name", NAMES)
def test_links_stand_where_opensims_bodies_do(imported, name):
    found = imported[name]
    robot, source = found.model.robot, found.source
    rng = np.random.default_rng(3)
    limits = {n: coordinate_range(source, n) for n in free_coordinates(source)}
    for _ in range(20):
        q = values(source, {n: rng.uniform(*limits[n]) for n in limits})
        poses = body_poses(source, q)
        rotations, positions = node_poses(robot.tree, our_coordinates(robot, found.coordinates, q))
        for body in source.bodies:
            if name == "knee" and body != "thigh":
                continue  # not exact, see below
            node, pose = robot.tree.link_node[body]
            wanted = UPRIGHT @ poses[body]
            np.testing.assert_allclose(
                positions[node] + rotations[node] @ pose.translation,
                wanted.translation,
                atol=1e-12,
            )
            np.testing.assert_allclose(
                rotations[node] @ pose.rotation, wanted.rotation, atol=1e-12
            )


@pytest.mark.parametrize("name", NAMES)
def test_lengths_and_moment_arms_without_wraps_are_opensims(imported, dynamics, name):
    found = imported[name]
    columns = {n: i for i, n in enumerate(found.model.robot.tree.velocity_names)}
    seen = 0
    for free, theirs in OPENSIM[name]:
        lengths, jacobian = state_at(found, dynamics[name], free)
        for row, muscle in enumerate(found.source.muscles):
            if muscle.wraps or not exact(found, muscle.name):
                continue
            seen += 1
            numbers = theirs[muscle.name]
            assert lengths[row] == pytest.approx(numbers["length"], abs=1e-9)
            for coordinate, arm in numbers["arms"].items():
                where = found.coordinates[coordinate]
                if where.angle is None:
                    ours = -jacobian[row, columns[where.joint]] * where.scale
                    assert ours == pytest.approx(arm, abs=1e-8)
    assert seen or name == "shoulder"


@pytest.mark.parametrize("name", NAMES)
def test_fibres_and_ligaments_are_opensims(imported, name):
    found = imported[name]
    for _, theirs in OPENSIM[name]:
        for muscle, ours in found.muscles.items():
            actuator = found.model.robot.muscle(ours).actuator
            numbers = theirs[muscle]
            if isinstance(actuator, Ligament) and "tension" in numbers:
                strain = numbers["length"] / actuator.slack_length - 1
                assert numbers["tension"] == pytest.approx(
                    max(0.0, actuator.stiffness * (strain - 0.5 * actuator.toe_strain))
                    if strain > actuator.toe_strain
                    else 0.5 * actuator.stiffness * max(strain, 0) ** 2 / actuator.toe_strain,
                    abs=1e-6,
                )
            for activation, fiber in zip(ACTIVATIONS, numbers.get("fibers", ()), strict=False):
                if fiber is None or fiber[0] < 0.21 * actuator.optimal_fiber_length:
                    continue
                length, active, passive = fiber_equilibrium(
                    actuator, np.array([numbers["length"]]), np.array([activation])
                )
                strongest = actuator.max_isometric_force
                assert length[0] == pytest.approx(
                    fiber[0], abs=1e-7 * actuator.optimal_fiber_length
                )
                assert active[0] == pytest.approx(fiber[1], abs=1e-6 * strongest)
                assert passive[0] == pytest.approx(fiber[2], abs=1e-6 * strongest)


def test_over_wrap_objects_the_taut_string_confirms_ours(imported, dynamics):
    """OpenSim's solvers are approximate: up to 0.1 mm off."""
    checked, off = 0, 0.0
    for name in ("arm", "shoulder"):
        found = imported[name]
        for free, theirs in OPENSIM[name]:
            lengths, _ = state_at(found, dynamics[name], free)
            bodies = body_poses(found.source, values(found.source, free))
            for row, muscle in enumerate(found.source.muscles):
                if not muscle.wraps:
                    continue
                wrap = muscle.wraps[0].wrap
                to_wrap = (bodies[wrap.body] @ wrap.pose).inverse()
                ends = [to_wrap.apply(bodies[p.body].apply(p.position)) for p in muscle.points]
                a, b = (0, 1) if len(ends) == 2 else (1, 2)
                straight = np.linalg.norm(np.diff(ends, axis=0), axis=1).sum()
                if lengths[row] < straight + 1e-6:
                    continue  # not touched
                index, sign = wrap.quadrant or (0, 0.0)
                middle = 0.5 * (ends[a] + ends[b])
                side = middle * [1, 1, 0] if name == "arm" or wrap.name == "shaft" else middle
                side = side / np.linalg.norm(side) * 0.05
                if wrap.quadrant:
                    side = 0.05 * sign * np.eye(3)[index]
                if wrap.name == "ring":
                    side = -middle * [1, 1, 0]  # through the hole
                taut = taut_length(wrap.geometry, ends[a], ends[b], side)
                rest = straight - np.linalg.norm(ends[b] - ends[a])
                assert lengths[row] == pytest.approx(rest + taut, abs=1e-6), (name, wrap.name)
                off = max(off, abs(theirs[muscle.name]["length"] - rest - taut))
                checked += 1
    assert checked >= 4
    assert 1e-6 < off < 2e-4, off


def test_a_knee_becomes_the_hinge_that_fits_best_and_says_how_far_it_is_off(imported, dynamics):
    found = imported["knee"]
    codes = {item.code: item for item in found.model.findings}
    assert set(codes) == {
        "joint-not-convertible", "path-not-convertible", "coordinate-coupled", "range-left-out",
        "muscle-fit",
    }  # fmt: skip
    assert found.paths["hip_flexor"].reasons == []
    error = found.errors["extensor"]
    assert f"{1000 * error:.3g} mm" in codes["path-not-convertible"].message
    worst = 0.0
    for free, theirs in OPENSIM["knee"]:
        lengths, _ = state_at(found, dynamics["knee"], free)
        worst = max(worst, abs(lengths[0] - theirs["extensor"]["length"]))
    assert 1e-4 < worst <= error


def test_how_far_the_inertia_along_a_knee_is_off_is_said(imported, dynamics):
    """Twice OpenSim's kinetic energy at a rate of 1, with the patella that follows."""
    theirs = (
        0.07106726758737204, 0.07492862162063244, 0.07730927608952069, 0.07818554067830787,
        0.07779484075047484, 0.07644685573566053, 0.07486560005157211, 0.07479980292433744,
        0.07718013904383206,
    )  # fmt: skip
    found = imported["knee"]
    row = found.model.robot.tree.velocity_names.index("knee")
    off = []
    for value, inertia in zip(np.linspace(-2.0, 0.1, 9), theirs, strict=True):
        assert inertia_along(found.source, "knee", value) == pytest.approx(inertia, rel=1e-6)
        state = values(found.source, {"knee": float(value)})
        q = our_coordinates(found.model.robot, found.coordinates, state)
        mass = dynamics["knee"].update(q, np.zeros(found.model.robot.tree.nv)).mass_matrix
        off.append(100.0 * (mass[row, row] / inertia - 1.0))
    (said,) = [f for f in found.model.warnings if f.subject == "joint 'knee'"]
    ends = f"{min(off):.3g} to {max(off):.3g} %"
    assert said.message.endswith(f"; the inertia along 'knee' is off by {ends} over its range")
    assert min(off) < -1.0


def test_parameters_come_over_exactly(imported):
    robot = imported["arm"].model.robot
    extensor = robot.muscle("extensor").actuator
    assert extensor == Hill(
        max_isometric_force=700, optimal_fiber_length=0.12, tendon_slack_length=0.18,
        pennation_angle=0.2, curves="thelen_2003", tendon="elastic", tendon_strain=0.033,
        damping=1e-4, activation_time=0.01, deactivation_time=0.05, passive_strain=0.6,
        active_width=0.5, passive_growth=4, velocity_shape=0.3, lengthening_force=1.8,
    )  # fmt: skip
    flexor = robot.muscle("flexor").actuator
    assert (flexor.curves, flexor.active_floor, flexor.damping) == ("millard_2012", 0.0, 0.05)
    assert robot.muscle("short").actuator.tendon == "rigid"
    assert robot.muscle("band").actuator == Ligament(stiffness=2000, slack_length=0.06)
    assert robot.gravity.tolist() == [0.0, 0.0, -9.80665]  # to the last bit


def test_a_folder_that_is_written_loads_as_the_same_robot(imported, dynamics, tmp_path):
    found = imported["arm"]
    path = write_imported(found.model, tmp_path)
    again = make_dynamics(load(path))
    for free, _ in OPENSIM["arm"]:
        lengths, jacobian = state_at(found, dynamics["arm"], free)
        q = our_coordinates(load(path), found.coordinates, values(found.source, free))
        state = again.update(q, np.zeros(2))
        np.testing.assert_allclose(state.muscle_lengths, lengths, atol=1e-9)
        np.testing.assert_allclose(state.muscle_jacobian, jacobian, atol=1e-9)


def one(**changes):
    """Return an arm with one thing changed."""
    text = samples.arm()
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new) if "Joint" in old else text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("PinJoint", "ScrewJoint"), r"x.osim:\d+: .*'ScrewJoint' cannot be converted"),
        (("/bodyset/forearm", "/bodyset/fore"), r"frame '/bodyset/fore' does not exist"),
        (("<radius>0.016", "<radius>-1"), r"-1 .*greater than 0"),
        (("<coefficients>1.0 0.0", "<coefficients>1.0"), "1 coefficients"),
        (("<wrap_object>elbow_pulley", "<wrap_object>elbo"), "wrap object 'elbo' does not exist"),
        (("<max_isometric_force>700", "<max_isometric_force>x"), "'x' is not a number"),
        (('Version="40000"', 'Version="10000"'), "too old"),
        (('Version="40000"', 'Version="99999"'), "99999 is not known yet .*20000 to 40600"),
        (("<Flen>1.8</Flen>", "<Flenn>1.8</Flenn>"),
         r"<Flenn>: unknown element in Thelen2003Muscle 'extensor'; did you mean <Flen>\?"),
        (("<active>true</active>", "<activ>true</activ>"), "WrapCylinder.*did you mean <active>"),
        (("<locked>false</locked>", "<lockd>false</lockd>"), "Coordinate.*did you mean <locked>"),
        (("<minimum_value>0</minimum_value>", "<minimum_valu>0</minimum_valu>"),
         "ActiveForceLengthCurve.*did you mean <minimum_value>"),
        (("<gravity>0 -9.80665 0</gravity>", "<gravitiy>0 0 0</gravitiy>"),
         "Model 'our_arm'; did you mean <gravity>"),
        (("<max_isometric_force>700<", "<pennation_angle>0.3</pennation_angle>"
          "<max_isometric_force>700<"), "pennation_angle.* no property of version 40000"),
        (("<CoordinateActuator name", "<Thelen2003Muscl/><CoordinateActuator name"),
         r"unknown force <Thelen2003Muscl>; did you mean <Thelen2003Muscle>\?"),
        (('Muscle name="flexor"', 'Muscle name="extensor"'),
         r"Millard2012EquilibriumMuscle 'extensor': Thelen2003Muscle 'extensor' in line \d+ has"),
        (('Body name="forearm"', 'Body name="upper_arm"'),
         r"Body 'upper_arm': Body 'upper_arm' in line \d+ has this name too"),
        (("<range>0 2.2", "<range>3 2.2"), "range 3 to 2.2"),
        (("<mass>1.2", "<mass>-1"), "at least 0"),
        (("<quadrant>all", "<quadrant>w"), "quadrant 'w'"),
        (("<flexion", "<<"), "malformed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, change, message):
    path = tmp_path / "x.osim"
    if change[0] == "<flexion":
        path.write_text(samples.arm()[:-40])
    else:
        path.write_text(one(change=change))
    with pytest.raises(DescriptionError, match=message) as error:
        import_osim(path)
    assert error.value.line


@pytest.mark.parametrize("default", [-7.0, 9.0])
def test_a_default_far_outside_of_its_range_is_home_and_paths_are_looked_at_within(
    tmp_path, default
):
    text = samples.arm()
    start = text.index("<default_value>") + len("<default_value>")
    path = tmp_path / "arm.osim"
    path.write_text(text[:start] + str(default) + text[text.index("</default_value>", start) :])
    found = import_osim(path)
    (name,) = [n for n, c in found.source.coordinates.items() if c.default == default]
    low, high = coordinate_range(found.source, name)
    item = found.source.coordinates[name]
    assert item.lower <= low < high <= item.upper
    assert (default,) in found.model.robot.home.values()


def test_comparing_says_where_opensim_is_missing(imported):
    with pytest.raises(CardsError, match="cannot be run"):
        measure(imported["old_arm"], "/nowhere/python")


@pytest.mark.parametrize("default", [3.0, -20.0, 1e5])
def test_a_default_out_of_its_range_extends_the_limits_of_the_joint(tmp_path, default):
    path = tmp_path / "shoulder.osim"
    inside = samples.coordinate("elevation", 0.1, 2.0, 0.5)
    assert inside in samples.shoulder()
    outside = samples.coordinate("elevation", 0.1, 2.0, default)
    path.write_text(samples.shoulder().replace(inside, outside))
    found = import_osim(path)
    robot = found.model.robot
    axis = robot.joint("elevation").axes[0]
    assert robot.home["elevation"] == (default,)
    assert axis.lower == min(0.1, default)
    assert axis.upper == max(2.0, default)
    (said,) = [f for f in found.model.warnings if f.code == "range-widened"]
    assert said.subject == "coordinate 'elevation'"
    assert said.line
    assert f"{default:.6g} is outside of its range 0.1 to 2" in said.message


def osim(tmp_path, text):
    path = tmp_path / "x.osim"
    path.write_text(text)
    return import_osim(path)


def test_defaults_of_the_document_count_where_an_object_says_nothing(tmp_path):
    # OpenSim 4.6 says the same: 7.5 for the extensor, which has an Flen of its own, 10 for others
    defaults = (
        '<defaults><Thelen2003Muscle name="default"><Flen>1.6</Flen><max_contraction_velocity>7.5'
        "</max_contraction_velocity></Thelen2003Muscle></defaults>"
    )
    text = samples.arm().replace('<Ground name="ground"/>', f'{defaults}<Ground name="ground"/>')
    robot = osim(tmp_path, text).model.robot
    assert robot.muscle("extensor").actuator.max_velocity == 7.5
    assert robot.muscle("extensor").actuator.lengthening_force == 1.8
    assert robot.muscle("flexor").actuator.max_velocity == 10.0


@pytest.mark.parametrize(
    ("damping", "rigid", "minimum", "floor", "ours"),
    [  # the floors are what OpenSim 4.6 has after it loaded such a muscle
        (None, "false", None, 0.0, 0.1),
        (None, "false", 0.05, 0.0, 0.1),
        (0.1, "false", 0.2, 0.0, 0.1),
        (0.001, "false", None, 0.0, 0.001),
        (0.0005, "false", None, 0.1, 1e-4),
        (0.0, "false", None, 0.1, 1e-4),
        (0.0, "false", 0.05, 0.1, 1e-4),
        (0.0, "false", 0.2, 0.2, 1e-4),
        (0.0, "true", None, 0.0, 1e-4),
        (0.0, "true", 0.2, 0.0, 1e-4),
    ],
)
def test_the_minimum_of_millards_active_curve_is_the_one_that_opensim_sets(
    tmp_path, damping, rigid, minimum, *, floor, ours
):
    tags = f"<ignore_tendon_compliance>{rigid}</ignore_tendon_compliance>"
    if minimum is not None:
        tags += f"<ActiveForceLengthCurve><minimum_value>{minimum}</minimum_value>"
        tags += "</ActiveForceLengthCurve>"
    if damping is not None:
        tags += f"<fiber_damping>{damping}</fiber_damping>"
    old = (
        "<ActiveForceLengthCurve><minimum_value>0</minimum_value></ActiveForceLengthCurve>"
        "<fiber_damping>0.05</fiber_damping>"
    )
    assert old in samples.arm()
    model = osim(tmp_path, samples.arm().replace(old, tags)).model
    hill = model.robot.muscle("flexor").actuator
    assert (hill.active_floor, hill.damping) == (floor, ours)
    said = [f for f in model.warnings if f.code == "curve-not-convertible"]
    assert len(said) == (floor > 0.0)  # of the ends of the force-velocity curve
    if not floor:  # of OpenSim 4.6 too
        found = curves_of(hill).active(NUMPY, np.array([0.4, 0.4513, 0.5]))[0]
        assert found == pytest.approx([0.0, 9.325036734267535e-05, 0.09853248961876138], abs=1e-9)


def test_the_scale_of_a_coupling_counts(tmp_path):
    # OpenSim 4.6: patella_angle -0.38 at knee -0.4, twice 0.5 q + 0.01
    end = "</CoordinateCouplerConstraint>"
    found = osim(tmp_path, samples.knee().replace(end, f"<scale_factor>2</scale_factor>{end}"))
    assert values(found.source, {"knee": -0.4})["patella_angle"] == pytest.approx(-0.38, abs=1e-15)


def test_parts_outside_of_the_sets_of_the_model_are_read(tmp_path):
    text, loose = samples.arm(), ""
    for tag in ("BodySet", "JointSet", "ForceSet"):
        start, end = text.index(f"<{tag}>"), text.index(f"</{tag}>")
        inner = text[start:end].removeprefix(f"<{tag}><objects>").removesuffix("</objects>")
        text = text[:start] + f"<{tag}><objects/>" + text[end:]
        loose += inner
    text = text.replace("<gravity>", f"<components>{loose}</components><gravity>")
    (tmp_path / "sets").mkdir()
    wanted, found = osim(tmp_path / "sets", samples.arm()), osim(tmp_path, text)
    assert found.model.robot.muscles
    for one_muscle, other in zip(
        found.model.robot.muscles, wanted.model.robot.muscles, strict=True
    ):
        assert one_muscle.name == other.name
        assert one_muscle.actuator == other.actuator
    assert found.model.robot.tree.position_names == wanted.model.robot.tree.position_names


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("<locked>false</locked>", "<locked>false</locked><prescribed>true</prescribed>",
         "coordinate-prescribed"),
        ("<max_isometric_force>", "<ignore_activation_dynamics>true</ignore_activation_dynamics>"
         "<max_isometric_force>", "dynamics-not-convertible"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_named(tmp_path, old, new, code):
    found = osim(tmp_path, samples.arm().replace(old, new, 1))
    (said,) = [item for item in found.model.warnings if item.code == code]
    assert said.line


PATH = """<GeometryPath name="path"><PathPointSet><objects>{}{}</objects></PathPointSet>
</GeometryPath>""".format(
    samples.point("p1", "upper_arm", "0 -0.1 0"), samples.point("p2", "forearm", "0 -0.1 0")
)


@pytest.mark.parametrize(
    ("force", "level", "why"),
    [
        ('<MyFancyMuscle name="new"/>', "warning", "no force of OpenSim has this name"),
        ('<SomethingElse name="new"/>', "warning", "no force of OpenSim has this name"),
        (f'<ClutchedPathSpring name="new">{PATH}</ClutchedPathSpring>', "warning",
         "no counterpart"),
        (f'<Ligament name="new">{PATH}</Ligament>', "warning", "no counterpart"),
        (f'<MyFancyMuscle name="new">{PATH}<appliesForce>false</appliesForce></MyFancyMuscle>',
         "note", "switched off"),
        ('<CoordinateLimitForce name="new"/>', "note", "no counterpart"),
    ],
)  # fmt: skip
def test_muscles_and_unknown_forces_that_are_left_out_are_warnings(tmp_path, force, level, why):
    here = "<CoordinateActuator"
    found = osim(tmp_path, samples.arm().replace(here, f"\n{force}{here}"))
    assert "new" not in found.muscles
    (said,) = [f for f in found.model.findings if f.subject.endswith(" 'new'")]
    assert (said.level, said.code) == (level, "left-out")
    assert said.line
    assert why in said.message


LEVER = samples.body("lever", 1.2, "0 -0.18 0"), samples.joint(
    "PinJoint", "hinge", "ground", "lever", samples.coordinate("swing", -1.1, 1.1, 0.25),
    at="0 0.9 0",
)  # fmt: skip
FORE, AFT = (
    '<GeometryPath name="path"><PathPointSet><objects>'
    + samples.point("p", "ground", f"{x} 0.9 0.02")
    + samples.point("q", "lever", "0.01 -0.25 0.03")
    + "</objects></PathPointSet></GeometryPath>"
    for x in (0.35, -0.35)
)


def test_cables_and_springs_are_opensims(tmp_path):
    """A PathActuator is a cable, a PathSpring a passive spring: numbers of OpenSim 4.6."""
    found = osim(
        tmp_path,
        samples.document(
            *LEVER,
            '<PathActuator name="fore"><min_control>0.1</min_control><max_control>5</max_control>'
            f'<optimal_force>30</optimal_force>{FORE}</PathActuator><PathSpring name="spring">'
            "<resting_length>0.3</resting_length><stiffness>800</stiffness>"
            f"<dissipation>0</dissipation>{AFT}</PathSpring>",
        ),
    )
    assert not found.model.warnings
    fore, spring = found.model.robot.muscles
    assert (fore.tension_min, fore.tension_max, fore.kind) == (3.0, 150.0, "cable")
    assert fore.actuator.stiffness is None
    assert not spring.takes_tension  # a spring takes no command
    write_imported(found.model, tmp_path / "out")
    robot = load(tmp_path / "out" / "sample" / "model.sdf")
    engine = make_dynamics(robot)
    springs = ActuatorBank(robot, 1e-3)
    for swing, lengths, arms, tension in (
        (-0.8, (0.5753914243913597, 0.19387203902597397), (0.079023414971, -0.234533022551), 0.0),
        (0.25, (0.4224502408341412, 0.43611632943330925), (0.204211108330, -0.197811973716),
         108.89306354664741),
        (1.0, (0.2498592693593196, 0.5533823310284072), (0.244628232404, -0.110452806290),
         202.70586482272574),
    ):  # fmt: skip
        state = engine.update(np.array([swing]), np.zeros(1))
        np.testing.assert_allclose(state.muscle_lengths, lengths, rtol=0, atol=1e-14)
        np.testing.assert_allclose(-state.muscle_jacobian[:, 0], arms, rtol=0, atol=1e-11)
        told = np.full(2, FORCE), np.zeros(2)
        _, pull = springs.step(state.muscle_lengths, np.zeros(2), *told)
        assert pull == pytest.approx(tension, abs=1e-6)


@pytest.mark.parametrize(
    ("controls", "limits", "code"),
    [
        ("<min_control>-1</min_control><max_control>2</max_control>", (0.0, 60.0), "one-sided"),
        ("<max_control>2</max_control>", (0.0, 60.0), "one-sided"),
        ("<min_control>0</min_control>", (0.0, 1000.0), "no-limit"),
        ("", (0.0, 1000.0), "no-limit"),
    ],
)
def test_a_cable_that_pushes_or_has_no_limit_is_said(tmp_path, controls, limits, code):
    force = f'<PathActuator name="a">{controls}<optimal_force>30</optimal_force>{FORE}'
    found = osim(tmp_path, samples.document(*LEVER, force + "</PathActuator>"))
    (cable,) = found.model.robot.muscles
    assert (cable.tension_min, cable.tension_max) == limits
    (said,) = found.model.warnings
    assert (said.code, said.subject) == (code, "muscle 'a'")
    assert said.line


@pytest.mark.parametrize(
    ("kind", "extra", "expected"),
    [
        ("Schutte1993Muscle_Deprecated", "<time_scale>0.125</time_scale><SimmSpline name="
         '"active_force_length_curve"><x>0 1 2</x><y>0 1 0</y></SimmSpline>',
         ("thelen_2003", 8.0, "elastic")),
        ("Delp1990Muscle", "<mass>0.1</mass><time_scale>0.1</time_scale>",
         ("thelen_2003", 10.0, "elastic")),
        ("Thelen2003Muscle_Deprecated", "<Vmax>6</Vmax><Flen>1.8</Flen>",
         ("thelen_2003", 6.0, "elastic")),
        ("RigidTendonMuscle", "", ("thelen_2003", 12.0, "rigid")),
        ("MeyerFregly2016Muscle", "", ("de_groote_2016", 12.0, "rigid")),
        ("Millard2012AccelerationMuscle", "<mass>0.1</mass>", ("millard_2012", 12.0, "elastic")),
    ],
)  # fmt: skip
def test_other_muscles_pull_along_their_paths_and_their_curves_are_named(
    tmp_path, kind, extra, expected
):
    points = samples.point("p", "ground", "0.35 0.9 0.02") + samples.point(
        "q", "lever", "0.01 -0.25 0.03"
    )
    extra += "<max_contraction_velocity>12</max_contraction_velocity>"
    force = samples.muscle("m", points, kind=kind, force=207, extra=extra)
    found = osim(tmp_path, samples.document(*LEVER, force))
    (muscle,) = found.model.robot.muscles
    hill = muscle.actuator
    assert (hill.curves, hill.max_velocity, hill.tendon) == expected
    assert hill.max_isometric_force == 207.0
    assert (hill.optimal_fiber_length, hill.tendon_slack_length) == (0.1, 0.15)
    said = [item for item in found.model.warnings if item.code == "curve-not-convertible"]
    assert any(kind in item.message and hill.curves in item.message for item in said)
    lengths, jacobian = state_at(found, make_dynamics(found.model.robot), {"swing": 1.0})
    assert lengths[0] == pytest.approx(0.2498592693593196, abs=1e-14)  # OpenSim's
    assert -jacobian[0, 0] == pytest.approx(0.2446282324043335, abs=1e-11)


def test_what_drives_a_coordinate_is_a_motor_of_its_joint(tmp_path):
    """Efforts add up; in a coordinate of twice the angle, half of the torque is the same power."""
    text = samples.document(
        LEVER[0] + samples.body("tip") + samples.body("ball"),
        LEVER[1].replace("</PinJoint>", "</PinJoint>\n")
        + samples.joint(
            "CustomJoint", "geared", "lever", "tip", samples.coordinate("half"),
            inner=samples.transform(rotation1=("1 0 0", "half", samples.linear(2.0))),
        )
        + samples.joint("BallJoint", "ball", "tip", "ball",
                        "".join(samples.coordinate(f"b{i}") for i in range(3))),
        "".join(
            f"<{kind} name='{kind}{number}'><coordinate>{name}</coordinate>{numbers}</{kind}>"
            for number, (kind, name, numbers) in enumerate((
                ("CoordinateActuator", "swing", "<optimal_force>4</optimal_force>"
                 "<min_control>-1</min_control><max_control>1</max_control>"),
                ("ActivationCoordinateActuator", "swing", "<optimal_force>2</optimal_force>"
                 "<min_control>-0.5</min_control><max_control>3</max_control>"),
                ("CoordinateActuator", "half", "<optimal_force>8</optimal_force>"
                 "<min_control>-1</min_control><max_control>1</max_control>"),
                ("CoordinateActuator", "b1", ""),
            ))
        ),
    )  # fmt: skip
    found = osim(tmp_path, text)
    motors = motors_of(found.model.robot.tree)
    assert motors.names == ("swing", "half")
    np.testing.assert_allclose(motors.efforts, [4.0 + 6.0, 4.0])
    said = {(f.subject, f.code) for f in found.model.findings if f.code != "coordinate-scaled"}
    assert ("coordinate 'swing'", "one-sided") in said
    assert ("coordinate 'b1'", "left-out") in said
    locked = osim(tmp_path, text.replace("<locked>false", "<locked>true", 1))
    assert motors_of(locked.model.robot.tree).names == ("half",)
    with pytest.raises(DescriptionError, match=r"osim:\d+: .*coordinate 'swung' does not exist"):
        osim(tmp_path, text.replace("<coordinate>swing<", "<coordinate>swung<"))


def test_a_muscle_that_is_never_taut_is_named_with_its_numbers(tmp_path, imported):
    for found in imported.values():
        assert not [f for f in found.model.findings if f.code == "never-taut"]
    text = samples.arm().replace("<slack_length>0.06<", "<slack_length>0.6<")
    old = "<tendon_slack_length>0.18<"  # of the extensor, which wraps
    assert old in text
    found = osim(tmp_path, text.replace(old, "<tendon_slack_length>180<"))
    said = {f.subject: f for f in found.model.warnings if f.code == "never-taut"}
    assert set(said) == {"muscle 'extensor'", "muscle 'band'"}
    assert (
        "its slack length 180 m is longer than its path, 0." in said["muscle 'extensor'"].message
    )
    for item in found.source.muscles:
        if item.name in ("extensor", "band"):
            assert said[f"muscle '{item.name}'"].line == item.element.line


def test_a_wrap_may_make_a_path_longer_than_the_slack_length(tmp_path, imported, dynamics):
    """Between the longest line through the points and the longest path over the cylinder."""
    name, found = "extensor", imported["arm"]
    row = [m.name for m in found.source.muscles].index(name)
    lines, paths = [], []
    for q, bodies in all_poses(found.source):
        muscle = found.source.muscles[row]
        lines.append(length(polyline(muscle, q, bodies)))
        at = our_coordinates(found.model.robot, found.coordinates, q)
        state = dynamics["arm"].update(at, np.zeros(found.model.robot.tree.nv))
        paths.append(float(state.muscle_lengths[row]))
    assert max(paths) > max(lines) + 1e-5
    for slack, count in ((0.5 * (max(paths) + max(lines)), 0), (max(paths) + 1e-6, 1)):
        text = samples.arm().replace(
            "<tendon_slack_length>0.18<", f"<tendon_slack_length>{slack}<"
        )
        said = [f for f in osim(tmp_path, text).model.findings if f.code == "never-taut"]
        assert len(said) == count


def test_every_property_that_is_read_is_known():
    """Every name that the readers ask for is in the table: else its object is refused."""
    known = {name for content in CONTENT.values() for name in content.once | content.many}
    asked = set()
    for module in (reading, joint_reading, path_reading, functions, muscles):
        tree = ast.parse(Path(module.__file__).read_text())
        for call in ast.walk(tree):
            name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if name in ("number", "vector", "flag", "sequence"):
                asked |= {a.value for a in call.args if isinstance(a, ast.Constant)}
    names = {name for name in asked if isinstance(name, str)}
    assert len(names) > 40
    assert names <= known


def test_a_coordinate_whose_range_has_no_extent_is_fixed(tmp_path):
    inside = samples.coordinate("elevation", 0.1, 2.0, 0.5)
    held = osim(tmp_path, samples.shoulder().replace(
        inside, samples.coordinate("elevation", 0.5, 0.5, 0.5)
    ))  # fmt: skip
    assert "elevation" not in held.coordinates
    (said,) = [f for f in held.model.warnings if f.code == "joint-locked"]
    assert (said.subject, bool(said.line)) == ("coordinate 'elevation'", True)
    locked = osim(tmp_path, samples.shoulder().replace(
        inside, samples.coordinate("elevation", 0.1, 2.0, 0.5, locked="true")
    ))  # fmt: skip
    for joint in held.model.robot.joints:
        same = locked.model.robot.joint(joint.name)
        assert joint.kind == same.kind
        np.testing.assert_array_equal(joint.parent_to_joint.matrix, same.parent_to_joint.matrix)


def elbow(quadrant: str) -> str:
    """An elbow whose extensor goes around a cylinder on its axis, at -x where it is stretched."""
    cylinder = samples.wrap_object(
        "WrapCylinder", "cylinder", "0 -0.29 0", quadrant=quadrant,
        shape="<radius>0.02</radius><length>0.2</length>",
    )  # fmt: skip
    joints = samples.joint(
        "WeldJoint", "shoulder", "ground", "humerus"
    ) + samples.joint(
        "PinJoint", "elbow", "humerus", "forearm", samples.coordinate("flexion", 0.0, 2.4),
        at="0 -0.29 0",
    ).replace("<orientation>0.1 -0.2 0.3<", "<orientation>0 0 0<")  # fmt: skip
    forces = samples.muscle(
        "extensor",
        samples.point("a", "humerus", "-0.02 -0.02 0")
        + samples.point("b", "forearm", "-0.015 -0.04 0"),
        samples.path_wrap("cylinder"), fiber=0.13, slack=0.2,
    )  # fmt: skip
    bodies = samples.body("humerus", wraps=cylinder) + samples.body("forearm")
    return samples.document(bodies, joints, forces)


def test_no_end_gets_behind_the_side_of_a_quadrant(tmp_path):
    """From 1.94 rad on the forearm's end would be behind the middle of the quadrant."""
    file = tmp_path / "elbow.osim"
    file.write_text(elbow("-x"))
    dynamics = make_dynamics(import_osim(file).model.robot, "numeric")
    lengths = []
    for q in (0.0, 1.0, 1.9, 1.95, 2.4):
        state = dynamics.update(np.array([q]), np.zeros(1))
        assert state.muscle_jacobian[0, 0] == pytest.approx(0.02, abs=1e-12)
        lengths.append(state.muscle_lengths[0] - 0.02 * q)
    np.testing.assert_allclose(lengths, lengths[0], atol=1e-12)


def test_a_quadrant_whose_side_no_end_gets_behind_stays(tmp_path):
    file = tmp_path / "elbow.osim"
    file.write_text(elbow("-x").replace("0.0 2.4", "0.0 1.8"))
    wrap = import_osim(file).model.robot.muscles[0].path[1]
    np.testing.assert_allclose(wrap.side, [-0.04, -0.29, 0.0], atol=1e-15)
