"""Turn the knots of CASPR trajectories into functions of time, in our order of coordinates.

As in CASPR, the angles of ``S_EULER_XYZ``, ``S_FIXED_XYZ`` and ``SPATIAL_EULER_XYZ`` joints turn
about one fixed axis per segment (`cards_core.trajectories.rotation`), everything else is a spline
per component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cards_core.formats.caspr.bodies import Body, CoordinateMap
from cards_core.formats.caspr.trajectories import CasprTrajectory
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.trajectories.base import Reference, TrajectoryError
from cards_core.trajectories.compose import rotation_spline
from cards_core.trajectories.rotation import Convention
from cards_core.trajectories.sampled import SampledReference
from cards_core.trajectories.splines import SplineKind
from cards_core.typing import Array

SPLINES: dict[str, SplineKind] = {
    "linear_spline_trajectory": "linear",
    "cubic_spline_trajectory": "cubic",
    "quintic_spline_trajectory": "quintic",
    "cubic_spline_average_velocity_trajectory": "cubic_average_velocity",
    "parabolic_blend_trajectory": "parabolic_blend",
}
"""Our spline for each kind of CASPR trajectory that is given by knots."""


def rotations_of(
    trajectory: CasprTrajectory, bodies: Sequence[Body], coordinates: CoordinateMap
) -> list[tuple[tuple[int, int, int], Convention]]:
    """Return our indices of a, b, g and their convention, for every three-dimensional rotation.

    Args:
        trajectory: The trajectory; none but those of joints have such rotations.
        bodies: The bodies of the file.
        coordinates: CASPR's order of the coordinates and ours.
    """
    out: list[tuple[tuple[int, int, int], Convention]] = []
    if trajectory.space != "joint" or trajectory.componentwise:
        return out
    if trajectory.kind == "file_trajectory":  # samples of angles, dense enough by themselves
        return out
    first = 0
    for body in bodies:
        kind = body.joint_type
        if kind.rotation_coordinates:
            a, b, g = (int(coordinates.index[first + i]) for i in kind.rotation_coordinates)
            fixed = kind.name == "S_FIXED_XYZ"
            out.append(((a, b, g), "fixed_xyz" if fixed else "euler_xyz"))
        first += kind.size
    return out


def build_reference(
    trajectory: CasprTrajectory,
    bodies: Sequence[Body],
    coordinates: CoordinateMap,
    *,
    caspr_sampling: bool = False,
) -> Reference:
    """Return the trajectory as a function of time.

    Joint trajectories are in our order of coordinates, operational ones in CASPR's order of y.

    Args:
        trajectory: The knots.
        bodies: CASPR's links, for the types of the joints.
        coordinates: Map of the joint coordinates.
        caspr_sampling: Fit every segment between its first and last *sample*, as CASPR does (see
            `cards_core.trajectories.splines`); needs a time step.

    Raises:
        TrajectoryError: No such motion, e.g. it meets gimbal lock.
    """

    def ours(table: Array | None) -> Array | None:
        if table is None or trajectory.space != "joint":
            return table
        return coordinates.from_caspr_q(table)

    if caspr_sampling and trajectory.time_step is None:
        raise TrajectoryError(
            f"trajectory '{trajectory.name}' has no time step, expected time_step in its file"
        )
    points, velocities, accelerations = (
        ours(table)
        for table in (trajectory.positions, trajectory.velocities, trajectory.accelerations)
    )
    assert points is not None
    reference: Reference
    if trajectory.kind == "file_trajectory":
        assert trajectory.time_step is not None
        assert velocities is not None
        assert accelerations is not None
        reference = SampledReference(trajectory.time_step, points, velocities, accelerations)
    else:
        reference = rotation_spline(
            SPLINES[trajectory.kind],
            trajectory.times,
            points,
            rotations_of(trajectory, bodies, coordinates),
            velocities=velocities,
            accelerations=accelerations,
            blend_times=trajectory.blend_times,
            caspr_time_step=trajectory.time_step if caspr_sampling else None,
        )
    reference.name = trajectory.name
    reference.space = trajectory.space
    if trajectory.space == "joint":
        names = [""] * len(coordinates.index)
        for place, name in zip(coordinates.index, coordinates.names, strict=True):
            names[place] = name
        reference.coordinate_names = tuple(names)
    return reference


def settle_trajectories(
    trajectories: Sequence[CasprTrajectory],
    bodies: Sequence[Body],
    coordinates: CoordinateMap,
    findings: FindingList,
    source: str,
) -> tuple[CasprTrajectory, ...]:
    """Return the trajectories that can be evaluated; say what became of the others.

    Args:
        trajectories: As read from the file.
        bodies: The bodies of the file.
        coordinates: CASPR's order of the coordinates and ours.
        findings: Takes a warning for each one that is left out or interpolated otherwise.
        source: Name of the file, for the warnings.
    """
    out: list[CasprTrajectory] = []
    for item in trajectories:
        subject, at = f"trajectory '{item.original_name}'", FilePlace(source, item.line)
        try:
            build_reference(item, bodies, coordinates)
            out.append(item)
            continue
        except TrajectoryError as error:
            problem = str(error)
        plain = replace(item, componentwise=True)
        try:
            build_reference(plain, bodies, coordinates)
        except TrajectoryError as error:
            findings.warn("trajectory-skipped", subject, f"left out: {error}", at=at)
            continue
        out.append(plain)
        findings.warn(
            "rotation-componentwise",
            subject,
            f"its angles are interpolated one by one, not about one axis: {problem}",
            at=at,
        )
    return tuple(out)
