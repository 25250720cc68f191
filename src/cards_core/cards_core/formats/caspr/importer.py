"""Import a CASPR model: four XML files to a `Robot`, data that a robot has no place for, a report.

The dynamics of the imported robot are CASPR's: the same M, C, G, l and L (in our order of the
coordinates), with the inertia tensors of the file even where no rigid body has them. For
simulation, `write_import` writes SDF with repaired inertias.

Of the shape of a link CASPR knows only points. Drawn are a bar from the joint to the
``end_location`` (as in CASPR), or, for links without an end, a box around the cables' attachment
points; and a small sphere at the centre of mass. The shapes do not collide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cards_core.checks import by_name
from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import UnknownNameError
from cards_core.formats.caspr.bodies import (
    Body,
    BodySystem,
    CoordinateMap,
    coordinate_map,
    read_bodies,
)
from cards_core.formats.caspr.cables import CableFile, CableSet, read_cables
from cards_core.formats.caspr.checks import (
    check_actuation,
    check_inertia,
    check_references,
    check_units,
)
from cards_core.formats.caspr.feasibility import Feasibility, check_trajectory
from cards_core.formats.caspr.fields import read_root
from cards_core.formats.caspr.files import CasprFiles, files_of
from cards_core.formats.caspr.muscles import attach_cables
from cards_core.formats.caspr.operational_spaces import (
    OperationalFile,
    OperationalSpace,
    read_operational_spaces,
)
from cards_core.formats.caspr.references import build_reference, settle_trajectories
from cards_core.formats.caspr.report import ImportReport
from cards_core.formats.caspr.trajectories import CasprTrajectory, read_trajectories
from cards_core.formats.imports.findings import (
    FilePlace,
    FindingList,
    NameTable,
    renamed_robot,
    safe_name,
)
from cards_core.formats.imports.inertias import home_within_limits
from cards_core.robot.elements import WORLD, Box, Cylinder, Link, Sphere, Visual
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rotation_z_to
from cards_core.trajectories.base import Reference
from cards_core.typing import Array, Vector3

# Shapes to draw --------------------------------------------------------------------------------


_COLOURS = (
    (0.27, 0.45, 0.69, 1.0),
    (0.80, 0.52, 0.25, 1.0),
    (0.40, 0.62, 0.40, 1.0),
    (0.58, 0.45, 0.68, 1.0),
)


def add_visuals(
    links: Sequence[Link], bodies: Sequence[Body], cable_set: CableSet
) -> tuple[Link, ...]:
    """Return the links with shapes made from the bodies' points and the cables' attachments.

    Args:
        links: Links of the robot.
        bodies: The bodies of the file, which know their links.
        cable_set: Cables whose via points, [m] in the links' frames, become part of the shapes.
    """
    points: dict[str, list[Vector3]] = {}
    for cable in cable_set.cables:
        for via in cable.path:
            points.setdefault(via.link, []).append(via.position)
    by_name = {body.link: body for body in bodies}
    return tuple(
        replace(link, visuals=_shapes(by_name[link.name], points.get(link.name, [])))
        if link.name in by_name
        else link
        for link in links
    )


def _shapes(body: Body, points: Sequence[Vector3]) -> tuple[Visual, ...]:
    colour = _COLOURS[(body.number - 1) % len(_COLOURS)]
    length = float(np.linalg.norm(body.end))
    shapes: list[Visual] = []
    size = length
    if length > 1e-6:
        pose = Pose(rotation_z_to(body.end / length), 0.5 * body.end)
        shapes.append(Visual("bar", Cylinder(0.03 * length, length), pose, colour))
    elif points:
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        size = max(float(np.max(high - low)), 0.02)
        edges = np.maximum(high - low, 0.05 * size)
        shapes.append(Visual("body", Box(edges), Pose(translation=0.5 * (low + high)), colour))
    if not shapes:
        return ()
    shapes.append(
        Visual("com", Sphere(0.05 * size), Pose(translation=body.com), (0.2, 0.2, 0.2, 1.0))
    )
    return tuple(shapes)


# Import ----------------------------------------------------------------------------------------


Progress = Callable[[str, float], None]
"""Called with what is being done and the done fraction of the whole import, 0..1."""

GRAVITY = 9.81
"""CASPR's constant, along -z of the world, [m/s^2]."""

SAMPLES = 25
"""Times at which every trajectory is checked."""


@dataclass(frozen=True, eq=False)
class CasprModel:
    """An imported CASPR model.

    Attributes:
        robot: Links, joints and the muscles of the chosen cable set; inertias as in the file.
        sdf_robot: What is written as SDF: valid inertias, small ones for links without mass,
            planar joints as chains (same coordinates); None if inertias cannot be repaired.
        bodies: CASPR's links in its order.
        coordinates: CASPR's order of q against ours.
        cables: All cable sets.
        cable_set: The chosen one.
        operational: All operational spaces; their frames are in ``robot.frames``.
        trajectories: Knots, in CASPR's order of coordinates.
        report: What was done, and what was found.
        files: Where it came from.
    """

    robot: Robot
    sdf_robot: Robot | None
    bodies: tuple[Body, ...]
    coordinates: CoordinateMap
    cables: CableFile
    cable_set: CableSet
    operational: OperationalFile
    trajectories: tuple[CasprTrajectory, ...]
    report: ImportReport
    files: CasprFiles

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.robot.name

    @property
    def operational_spaces(self) -> tuple[OperationalSpace, ...]:
        """All operational sets."""
        return self.operational.spaces

    def to_caspr_q(self, q: Array) -> Array:
        """Return a vector of ours in CASPR's order; see `CoordinateMap`."""
        return self.coordinates.to_caspr_q(q)

    def from_caspr_q(self, q: Array) -> Array:
        """Return a vector in CASPR's order in ours; see `CoordinateMap`."""
        return self.coordinates.from_caspr_q(q)

    def trajectory(self, name: str) -> CasprTrajectory:
        """Return a trajectory by our name or the file's id. Raises `UnknownNameError`."""
        for item in self.trajectories:
            if name in (item.name, item.original_name):
                return item
        raise UnknownNameError("trajectory", name, (item.name for item in self.trajectories))

    def operational_space(self, name: str) -> OperationalSpace:
        """Return an operational space by name. Raises `UnknownNameError`."""
        return by_name(self.operational.spaces, name, "operational space")

    def reference(self, name: str, *, caspr_sampling: bool = False) -> Reference:
        """Return a trajectory as a function of time; see `build_reference`.

        Raises:
            UnknownNameError: No trajectory has this name.
            TrajectoryError: CASPR's sampling is asked for and does not fit.
        """
        return build_reference(
            self.trajectory(name), self.bodies, self.coordinates, caspr_sampling=caspr_sampling
        )


def import_caspr(
    location: str | Path | Mapping[str, str | Path] | CasprFiles,
    *,
    cable_set: str | None = None,
    name: str | None = None,
    feasibility: bool = True,
    samples: int = SAMPLES,
    progress: Progress | None = None,
) -> CasprModel:
    """Import a model.

    Args:
        location: Folder of the model, its bodies file, a mapping from ``bodies``, ``cables``,
            ``trajectories``, ``operational_spaces`` to files, or an entry of `find_models`.
        cable_set: Id of the cable set to attach; default the file's own.
        name: Which model, if the folder holds several: the stem of its files.
        feasibility: Check whether the cables can carry the trajectories.
        samples: Number of times at which every trajectory is checked.
        progress: Called between the steps.

    Raises:
        DescriptionError: A file cannot be understood; the message names file, line and element.
        UnknownNameError: No such model or cable set.
        CardsError: Files are missing.
    """
    step = progress or (lambda _what, _fraction: None)
    step("reading", 0.0)
    files = location if isinstance(location, CasprFiles) else files_of(location, name)
    findings = FindingList()
    names = NameTable({WORLD})
    system = read_bodies(read_root(files.bodies, ("bodies_system", "links")), names, findings)
    cables = read_cables(read_root(files.cables, ("cables",)), system, findings)
    chosen = cables.select(cable_set, findings)
    operational = _operational_file(files, system, names, findings)
    trajectories: tuple[CasprTrajectory, ...] = ()
    if files.trajectories is None:
        findings.note("file-missing", "trajectories", "there is no trajectories file")
    else:
        root = read_root(files.trajectories, ("trajectories",))
        trajectories = read_trajectories(root, system.size, operational, findings)

    bare = _robot(files, system, chosen, operational)
    robot = attach_cables(bare, home_within_limits(bare), chosen, cables.source, findings)
    dynamics = make_dynamics(robot, "numeric")
    coordinates = coordinate_map(robot, system.bodies)
    if trajectories:
        trajectories = settle_trajectories(
            trajectories, system.bodies, coordinates, findings, str(files.trajectories)
        )
    step("checking", 0.05)
    sdf_robot, inertia = check_inertia(robot, dynamics, system.bodies, findings)
    check_actuation(dynamics, system.bodies, cables, findings)
    check_units(robot, cables, findings)
    check_references(
        robot,
        system.bodies,
        chosen,
        cables=cables,
        operational=operational,
        findings=findings,
    )
    results: list[Feasibility] = []
    if feasibility:
        for i, item in enumerate(trajectories):
            step(f"trajectory {item.name}", 0.1 + 0.9 * i / len(trajectories))
            results.append(
                _check(item, dynamics, system, coordinates, operational, samples=samples)
            )
            _describe(results[-1], item, files, findings)
    step("done", 1.0)
    bodies = tuple(system.bodies)
    report = ImportReport(
        robot=robot,
        files=files,
        bodies=bodies,
        coordinates=coordinates,
        cables=cables,
        cable_set=chosen,
        operational=operational,
        trajectories=trajectories,
        inertia=inertia,
        feasibility=tuple(results),
        renamed=(*renamed_robot(files.name, robot.name), *names.renamed),
        findings=findings,
    )
    return CasprModel(
        robot=robot,
        sdf_robot=sdf_robot,
        bodies=bodies,
        coordinates=coordinates,
        cables=cables,
        cable_set=chosen,
        operational=operational,
        trajectories=trajectories,
        report=report,
        files=files,
    )


def _operational_file(
    files: CasprFiles, system: BodySystem, names: NameTable, findings: FindingList
) -> OperationalFile:
    """Read the operational spaces from their own file, or from the bodies file (old layout)."""
    if files.operational_spaces is not None:
        root = read_root(files.operational_spaces, ("operational_spaces",))
        if system.operational_spaces is not None:
            findings.warn(
                "operational-spaces-twice",
                "<operational_spaces>",
                "those in the bodies file were ignored: there is a file of their own",
                at=system.operational_spaces,
            )
        return read_operational_spaces(root, system, names, findings)
    if system.operational_spaces is not None:
        findings.note(
            "old-layout",
            "<operational_spaces>",
            "taken from the bodies file, as CASPR's old layout has it",
            at=system.operational_spaces,
        )
        return read_operational_spaces(system.operational_spaces, system, names, findings)
    findings.note("file-missing", "operational spaces", "there is no operational_spaces file")
    return OperationalFile()


def _robot(
    files: CasprFiles, system: BodySystem, chosen: CableSet, operational: OperationalFile
) -> Robot:
    """Return the robot without its muscles."""
    return Robot(
        name=safe_name(files.name, "robot"),
        links=add_visuals(system.links, system.bodies, chosen),
        joints=tuple(system.joints),
        frames=operational.frames,
        operational_frame=operational.default.entries[0].frame if operational.default else None,
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        home=dict(system.home),
        source=str(files.bodies),
    )


def _check(
    item: CasprTrajectory,
    dynamics: Dynamics,
    system: BodySystem,
    coordinates: CoordinateMap,
    operational: OperationalFile,
    *,
    samples: int,
) -> Feasibility:
    space = next((s for s in operational.spaces if s.name == item.operational_space), None)
    reference = build_reference(item, system.bodies, coordinates)
    return check_trajectory(dynamics, reference, space, samples=samples)


def _describe(
    found: Feasibility, item: CasprTrajectory, files: CasprFiles, findings: FindingList
) -> None:
    """Warn of a trajectory that the robot cannot follow."""
    subject = f"trajectory '{item.original_name}'"
    at = FilePlace(str(files.trajectories), item.line)
    problems: list[str] = []
    if found.unreachable is not None:
        problems.append(f"the marker cannot reach it from {found.unreachable:.3g} s on")
    elif found.first_dynamic_failure is not None:
        problems.append(
            f"no tensions within the limits at {found.first_dynamic_failure:.3g} s "
            f"({100 * found.dynamic_fraction:.0f} % of {found.samples} samples are feasible, "
            f"{100 * found.static_fraction:.0f} % can be held)"
        )
    if found.outside_limits is not None:
        problems.append(f"it leaves the joint limits at {found.outside_limits:.3g} s")
    if problems:
        findings.warn("trajectory-infeasible", subject, "; ".join(problems), at=at)
    elif not found.skipped and found.first_static_failure is not None:
        findings.note(
            "trajectory-not-static",
            subject,
            f"no tensions within the limits hold the pose at {found.first_static_failure:.3g} s "
            f"({100 * found.static_fraction:.0f} % of {found.samples} samples can be held); the "
            "motion needs its accelerations",
            at=at,
        )
    elif found.skipped:
        findings.note(
            "trajectory-unchecked",
            subject,
            f"its feasibility was not checked: {found.skipped}",
            at=at,
        )
