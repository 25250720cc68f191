"""Muscles and ligaments of an OpenSim model as ours: parameters, and paths with their wraps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cards_core.errors import ParameterError
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.opensim.fields import control_range, flag, number
from cards_core.formats.opensim.kinematics import active, location
from cards_core.formats.opensim.source import (
    ConditionalPoint,
    FixedPoint,
    MovingPoint,
    SourceModel,
    SourceMuscle,
    WrapObject,
)
from cards_core.formats.opensim.wraps import place_wraps
from cards_core.formats.sdf.values import text_of
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.actuators import Hill, Ligament
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Muscle,
    PathElement,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

SMALL_DAMPING = 1e-4
"""beta of muscles that have none in OpenSim; ours needs some."""

MILLARD_CURVES: Mapping[str, Mapping[str, float]] = {
    "ActiveForceLengthCurve": {},
    "ForceVelocityCurve": {
        "concentric_slope_near_vmax": 0.25,
        "isometric_slope": 5.0,
        "eccentric_slope_near_vmax": 0.15,
        "concentric_curviness": 0.6,
        "eccentric_curviness": 0.9,
    },
    "FiberForceLengthCurve": {},
    "TendonForceLengthCurve": {"norm_force_at_toe_end": 2.0 / 3.0, "curviness": 0.5},
}
"""Numbers of Millard's curves that ours have as constants."""

LEAST_DAMPING = 1e-3
"""Smallest ``fiber_damping`` of Millard's muscle; OpenSim takes a smaller one for none."""

UNDAMPED_FLOOR = 0.1
"""Least minimum of Millard's active curve without damping: there OpenSim divides by the curve."""

TENDON_SLOPE = 1.375
"""Slope of Millard's tendon curve at F0, times the strain there."""

OLD_PENNATION = 20301
"""Last version of the format that calls the pennation angle so, without ``_at_optimal``."""

STRONGEST = 2.0
"""Limit of the commanded tension, in F0."""

OWN_CURVES = ("Thelen2003Muscle", "Millard2012EquilibriumMuscle", "DeGrooteFregly2016Muscle")
"""Muscles whose curves ours are."""

RIGID = ("MeyerFregly2016Muscle", "RigidTendonMuscle")
"""Muscles whose tendon does not stretch whatever the file says."""

NO_TOE = 1e-9
"""Strain at which the tension of a spring becomes linear."""

UNLIMITED = 1000.0
"""Largest tension of a cable whose control has no limit, [N]."""


@dataclass
class PathReport:
    """What was made of a muscle's path.

    Attributes:
        reasons: Why its length is not exactly that of the file; empty if it is.
        points: Index in the file of every via point, in order.
    """

    reasons: list[str] = field(default_factory=list)
    points: list[int] = field(default_factory=list)


def convert_muscle(
    model: SourceModel,
    muscle: SourceMuscle,
    names: Mapping[str, str],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
    findings: FindingList,
) -> tuple[Muscle, PathReport]:
    """Return our muscle.

    Args:
        model: The model.
        muscle: The muscle.
        names: Names of links, wrap surfaces (``wrap:NAME``) and this muscle (``muscle:NAME``).
        poses: From `cards_core.formats.opensim.wraps.all_poses`.
        findings: Takes what is not exact.

    Raises:
        DescriptionError: Parameters that no muscle can have.
    """
    report = PathReport()
    name = names[f"muscle:{muscle.name}"]
    path = _path(model, muscle, names, poses, report=report, findings=findings)
    element = muscle.element
    if muscle.kind in PASSIVE:
        ligament = _ligament(muscle, findings)
        _check(ligament, element)
        return Muscle(name, path, 0.0, math.inf, ligament, line=element.line), report
    if muscle.kind == "PathActuator":
        return Muscle(name, path, *_tensions(muscle, findings), line=element.line), report
    hill = _hill(muscle, model.version, findings)
    _check(hill, element)
    limit = STRONGEST * hill.max_isometric_force
    return Muscle(name, path, 0.0, limit, hill, line=element.line), report


def _check(actuator: Hill | Ligament, element: XmlElement) -> None:
    try:
        actuator.check()
    except ParameterError as error:
        raise element.error(str(error)) from None


# Parameters ------------------------------------------------------------------------------------


def _hill(muscle: SourceMuscle, version: int, findings: FindingList) -> Hill:
    element = muscle.element
    pennation = element.child("pennation_angle")
    if version <= OLD_PENNATION:
        angle = number(element, "pennation_angle", 0.0)
    elif pennation is not None:
        raise pennation.error(f"no property of version {version}", "<pennation_angle_at_optimal>")
    else:
        angle = 0.0
    if flag(element, "ignore_activation_dynamics", False):
        findings.warn(
            "dynamics-not-convertible", f"muscle '{muscle.name}'",
            "ignore_activation_dynamics: its activation follows its excitation with its time "
            "constants here",
            at=element,
        )  # fmt: skip
    fastest = "Vmax" if "Thelen2003Muscle_" in muscle.kind else "max_contraction_velocity"
    common: dict[str, Any] = {
        "max_isometric_force": number(element, "max_isometric_force", 1000.0, above=0.0),
        "optimal_fiber_length": number(element, "optimal_fiber_length", 0.1, above=0.0),
        "tendon_slack_length": number(element, "tendon_slack_length", 0.2, above=0.0),
        "pennation_angle": number(element, "pennation_angle_at_optimal", angle),
        "max_velocity": number(element, fastest, 10.0, above=0.0),
    }
    if element.child("time_scale") is not None:  # of Schutte's and Delp's
        common["max_velocity"] = 1.0 / number(element, "time_scale", above=0.0)
    rigid = muscle.kind in RIGID or flag(element, "ignore_tendon_compliance", False)
    hill = HILL[muscle.kind](muscle, common, "rigid" if rigid else "elastic", findings)
    if muscle.kind not in OWN_CURVES:
        findings.warn(
            "curve-not-convertible", f"muscle '{muscle.name}'",
            f"{muscle.kind} has curves and activation dynamics of its own: those of curves="
            f"'{hill.curves}' are used",
            at=element,
        )  # fmt: skip
    return hill


def _tensions(muscle: SourceMuscle, findings: FindingList) -> tuple[float, float]:
    """Return the limits of a cable's tension, [N]."""
    low, high = control_range(muscle.element)
    subject, at = f"muscle '{muscle.name}'", muscle.element
    if not high > 0.0:
        raise at.error(f"a force of {low:g} to {high:g} N never pulls", "max_control above 0")
    most = UNLIMITED if math.isinf(high) else high
    if low < 0.0 or most < high:
        findings.warn(
            "one-sided" if most == high else "no-limit", subject,
            f"its force is {low:g} to {high:g} N: {max(low, 0.0):g} to {most:g} N here, as cables "
            "pull only and need limits",
            at=at,
        )  # fmt: skip
    return max(low, 0.0), most


def _ligament(muscle: SourceMuscle, findings: FindingList) -> Ligament:
    """Return a ligament; of a spring, K (l - l0), one with next to no toe."""
    element = muscle.element
    if muscle.kind == "PathSpring":
        rest = number(element, "resting_length", above=0.0)
        dissipation = number(element, "dissipation", lower=0.0)
        if dissipation > 0.0:
            findings.warn(
                "dynamics-not-convertible", f"muscle '{muscle.name}'",
                f"its tension grows by {dissipation:g} of itself for each m/s of its lengthening: "
                "without that here",
                at=element,
            )  # fmt: skip
        stiffness = rest * number(element, "stiffness", above=0.0)
        return Ligament(stiffness=stiffness, slack_length=rest, toe_strain=NO_TOE, damping=0.0)
    return Ligament(
        stiffness=number(element, "linear_stiffness", 1.0, above=0.0),
        slack_length=number(element, "slack_length", above=0.0),
        toe_strain=number(element, "transition_strain", 0.06, above=0.0),
        damping=number(element, "damping_coefficient", 0.003, lower=0.0),
    )


def _times(element: XmlElement, rise: float, fall: float) -> dict[str, Any]:
    return {
        "activation_time": number(element, "activation_time_constant", rise, above=0.0),
        "deactivation_time": number(element, "deactivation_time_constant", fall, above=0.0),
    }


def _thelen(
    muscle: SourceMuscle, common: dict[str, Any], tendon: str, findings: FindingList
) -> Hill:
    element = muscle.element
    del findings
    return Hill(
        **common,
        **_times(element, 0.015, 0.050),
        curves="thelen_2003",
        tendon=tendon,
        tendon_strain=number(element, "FmaxTendonStrain", 0.04, above=0.0),
        damping=SMALL_DAMPING,
        min_activation=number(element, "minimum_activation", 0.01),
        passive_strain=number(element, "FmaxMuscleStrain", 0.6, above=0.0),
        active_width=number(element, "KshapeActive", 0.45, above=0.0),
        passive_growth=number(element, "KshapePassive", 5.0, above=0.0),
        velocity_shape=number(element, "Af", 0.25, above=0.0),
        lengthening_force=number(element, "Flen", 1.4, above=1.0),
    )


def _de_groote(
    muscle: SourceMuscle, common: dict[str, Any], tendon: str, findings: FindingList
) -> Hill:
    element = muscle.element
    subject = f"muscle '{muscle.name}'"
    width = number(element, "active_force_width_scale", 1.0, above=0.0)
    if width != 1.0:
        findings.warn(
            "curve-not-convertible", subject,
            f"active_force_width_scale {width:g}: the active force-length curve is that of 1",
            at=element,
        )  # fmt: skip
    if flag(element, "ignore_passive_fiber_force", False):
        findings.warn(
            "curve-not-convertible", subject,
            "ignore_passive_fiber_force: the fibre has its passive force here",
            at=element,
        )  # fmt: skip
    return Hill(
        **common,
        **_times(element, 0.015, 0.060),
        curves="de_groote_2016",
        tendon=tendon,
        tendon_strain=number(element, "tendon_strain_at_one_norm_force", 0.049, above=0.0),
        damping=max(number(element, "fiber_damping", 0.0, lower=0.0), SMALL_DAMPING),
        min_activation=number(element, "minimum_activation", 0.01),
        passive_strain=number(element, "passive_fiber_strain_at_one_norm_force", 0.6, above=0.0),
    )


def _millard(
    muscle: SourceMuscle, common: dict[str, Any], tendon: str, findings: FindingList
) -> Hill:
    """Return Millard's muscle; OpenSim sets the minimum of its active curve whatever is stated.

    It is 0 with damping or a rigid tendon, else at least 0.1; so are the slopes at both ends of
    the force-velocity curve, else 0.125 and 0.075 with OpenSim's defaults (measured, 4.6).
    """
    element = muscle.element
    curves = {name: element.child(name) or element for name in MILLARD_CURVES}
    for curve, defaults in MILLARD_CURVES.items():
        for tag, default in defaults.items():
            child = curves[curve].child(tag)
            if child is not None and text_of(child) and curves[curve] is not element:
                value = number(curves[curve], tag)
                if abs(value - default) > 1e-12 * max(1.0, abs(default)):
                    findings.warn(
                        "curve-not-convertible", f"muscle '{muscle.name}'",
                        f"<{tag}> {value:g} of its {curve}: that of {default:g} is used",
                        at=FilePlace(element.source, child.line),
                    )  # fmt: skip
    active, tendon_curve = curves["ActiveForceLengthCurve"], curves["TendonForceLengthCurve"]
    strain = number(tendon_curve, "strain_at_one_norm_force", 0.049, above=0.0)
    stiffness = number(tendon_curve, "stiffness_at_one_norm_force", TENDON_SLOPE / strain)
    if abs(stiffness * strain - TENDON_SLOPE) > 1e-9:
        findings.warn(
            "curve-not-convertible", f"muscle '{muscle.name}'",
            f"<stiffness_at_one_norm_force> {stiffness:g} of its tendon: "
            f"{TENDON_SLOPE / strain:g} is used",
            at=FilePlace(element.source, tendon_curve.line),
        )  # fmt: skip
    damping = number(element, "fiber_damping", 0.1, lower=0.0)
    floor = number(active, "minimum_value", UNDAMPED_FLOOR, lower=0.0)
    if damping >= LEAST_DAMPING or tendon == "rigid":
        floor = 0.0
    else:
        floor = max(floor, UNDAMPED_FLOOR)
        findings.warn(
            "curve-not-convertible", f"muscle '{muscle.name}'",
            f"fiber_damping {damping:g}, below {LEAST_DAMPING:g}, is none: OpenSim then gives its "
            "force-velocity curve slopes of at least 0.125 and 0.075 at the ends; here they are 0",
            at=element,
        )  # fmt: skip
    return Hill(
        **common,
        **_times(element, 0.010, 0.040),
        curves="millard_2012",
        tendon=tendon,
        tendon_strain=strain,
        damping=damping if damping >= LEAST_DAMPING else SMALL_DAMPING,
        min_activation=number(element, "minimum_activation", 0.01),
        lengthening_force=number(
            curves["ForceVelocityCurve"], "max_eccentric_velocity_force_multiplier", 1.4, above=1.0
        ),
        **_passive_curve(curves["FiberForceLengthCurve"]),
        active_floor=floor,
        active_start=number(active, "min_norm_active_fiber_length", 0.4441),
        active_bend=number(active, "transition_norm_fiber_length", 0.73),
        active_end=number(active, "max_norm_active_fiber_length", 1.8123),
        active_slope=number(active, "shallow_ascending_slope", 0.8616),
    )


def _passive_curve(curve: XmlElement) -> dict[str, Any]:
    """Return Millard's passive curve; its last three numbers are given together or not at all."""
    out: dict[str, Any] = {
        "passive_start": number(curve, "strain_at_zero_force", 0.0),
        "passive_strain": number(curve, "strain_at_one_norm_force", 0.7, above=0.0),
    }
    optional = {
        "passive_foot": "stiffness_at_low_force",
        "passive_stiffness": "stiffness_at_one_norm_force",
        "passive_curviness": "curviness",
    }
    children = {name: curve.child(tag) for name, tag in optional.items()}
    if all(child is not None and text_of(child) for child in children.values()):
        out |= {name: number(curve, tag) for name, tag in optional.items()}
    return out


HILL = {
    "Millard2012EquilibriumMuscle": _millard, "Millard2012AccelerationMuscle": _millard,
    "DeGrooteFregly2016Muscle": _de_groote, "MeyerFregly2016Muscle": _de_groote,
    "Thelen2003Muscle": _thelen, "Thelen2003Muscle_Deprecated": _thelen,
    "Schutte1993Muscle": _thelen, "Schutte1993Muscle_Deprecated": _thelen,
    "Delp1990Muscle": _thelen, "Delp1990Muscle_Deprecated": _thelen, "RigidTendonMuscle": _thelen,
}  # fmt: skip
"""What makes the muscles with fibres: those with the nearest of our curves."""

PASSIVE = ("Blankevoort1991Ligament", "PathSpring")
MUSCLES = frozenset(["PathActuator", *PASSIVE, *HILL])
"""Forces that become muscles."""


# Path ------------------------------------------------------------------------------------------


def _path(
    model: SourceModel,
    muscle: SourceMuscle,
    names: Mapping[str, str],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
    *,
    report: PathReport,
    findings: FindingList,
) -> tuple[PathElement, ...]:
    default = poses[0][0]
    kept: list[int] = []
    positions = {}
    for index, point in enumerate(muscle.points):
        place = f"path point {index + 1}"
        match point:
            case FixedPoint():
                positions[index] = point.position
            case ConditionalPoint():
                ever = [active(point, q) for q, _ in poses]
                there = ever[0]
                if not all(ever) and any(ever):
                    what = "always on the path" if there else "left out"
                    report.reasons.append(
                        f"{place} is on the path only while {point.coordinate} is "
                        f"{point.lower:.4g} to {point.upper:.4g}: {what}"
                    )
                if not there:
                    continue
                positions[index] = point.position
            case MovingPoint():
                positions[index] = location(point, default)
                moved = max(
                    float(np.linalg.norm(location(point, q) - positions[index])) for q, _ in poses
                )
                if moved > 1e-12:
                    report.reasons.append(
                        f"{place} moves on its body by up to {1000 * moved:.3g} mm: fixed where "
                        f"it is at the defaults"
                    )
        kept.append(index)
    kept = _distinct(kept, muscle, positions)
    if len(kept) < 2:
        raise muscle.element.error(
            f"{len(kept)} path points at the default pose", "at least 2 different ones"
        )
    placement = place_wraps(model, muscle, kept, poses)
    for wrap, note in placement.notes:
        findings.warn(
            "wrap-placement", f"muscle '{muscle.name}'", f"wrap object '{wrap.name}' {note}",
            at=muscle.element,
        )  # fmt: skip
    for index, row in placement.segments.items():
        if len(row) > 1:
            listed = ", ".join(f"'{wrap.name}'" for wrap in row)
            findings.warn(
                "wraps-in-a-row", f"muscle '{muscle.name}'",
                f"wrap objects {listed} between path points {index + 1} and the next: OpenSim "
                "bends the path over one after the other until its length changes by less than "
                "0.5 mm; here it is the shortest path over all of them",
                at=muscle.element,
            )  # fmt: skip
    out: list[PathElement] = []
    for index in kept:
        point = muscle.points[index]
        out.append(ViaPoint(names[point.body], positions[index], line=point.element.line))
        report.points.append(index)
        for wrap in placement.segments.get(index, ()):
            out.append(_wrap(wrap, names, placement.sides.get(wrap.name)))
    return tuple(out)


def _distinct(kept: list[int], muscle: SourceMuscle, positions: Mapping[int, Array]) -> list[int]:
    """Leave out a point that is where its neighbour on the same body is."""
    out: list[int] = []
    for index in kept:
        if out:
            last = out[-1]
            same = muscle.points[last].body == muscle.points[index].body
            if same and np.array_equal(positions[last], positions[index]):
                continue
        out.append(index)
    return out


def _wrap(wrap: WrapObject, names: Mapping[str, str], side: Vector3 | None) -> Wrap:
    surface = names[f"wrap:{wrap.name}"]
    if isinstance(wrap.geometry, Torus):
        return Wrap(surface, inside=True)
    if wrap.quadrant is None:
        return Wrap(surface)
    if side is None:
        index, sign = wrap.quadrant
        side = sign * 2.0 * _size(wrap) * np.eye(3)[index]
    return Wrap(surface, side=wrap.pose.apply(side))


def _size(wrap: WrapObject) -> float:
    shape = wrap.geometry
    if isinstance(shape, Ellipsoid):
        return float(shape.radii.max())
    if isinstance(shape, Sphere):
        return shape.radius
    assert isinstance(shape, Cylinder)  # of a torus there is no side
    return shape.radius


def wrap_surface(wrap: WrapObject, names: Mapping[str, str]) -> WrapSurface:
    """Return a wrap object as ours.

    Args:
        wrap: The object.
        names: Names of links and, as ``wrap:NAME``, of wrap surfaces.
    """
    return WrapSurface(
        names[f"wrap:{wrap.name}"], names[wrap.body], wrap.geometry, wrap.pose,
        line=wrap.element.line,
    )  # fmt: skip
