"""The report of an import: everything a user must know to trust, or distrust, the result."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from cards_core.formats.caspr.bodies import Body, CoordinateMap
from cards_core.formats.caspr.cables import CableFile, CableSet
from cards_core.formats.caspr.checks import InertiaCheck
from cards_core.formats.caspr.feasibility import Feasibility, summarize
from cards_core.formats.caspr.files import CasprFiles
from cards_core.formats.caspr.operational_spaces import OperationalFile
from cards_core.formats.caspr.trajectories import CasprTrajectory
from cards_core.formats.imports.findings import Finding, FindingList
from cards_core.formats.imports.model import findings_text, table
from cards_core.robot.model import Robot

FORMAT = "cards-caspr-import-2"
"""Version of the JSON form; a change of meaning gets a new number."""


@dataclass(frozen=True, eq=False)
class ImportReport:
    """What was imported and what was found.

    Attributes:
        robot: The imported robot.
        files: Where it came from.
        bodies, coordinates, cables, cable_set, operational, trajectories: As in `CasprModel`.
        inertia: Validity of the inertias.
        feasibility: One entry per trajectory; empty if it was not checked.
        renamed: (name in the files, our name) of the robot, links, joints and frames.
        findings: Warnings and notes.
    """

    robot: Robot
    files: CasprFiles
    bodies: tuple[Body, ...]
    coordinates: CoordinateMap
    cables: CableFile
    cable_set: CableSet
    operational: OperationalFile
    trajectories: tuple[CasprTrajectory, ...]
    inertia: InertiaCheck
    feasibility: tuple[Feasibility, ...]
    renamed: tuple[tuple[str, str], ...]
    findings: FindingList

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return self.findings.warnings

    def summary(self) -> str:
        """Return one line for a terminal."""
        robot = self.robot
        count = sum(item.count for item in self.warnings)
        return (
            f"{robot.name}: {len(self.bodies)} links, {len(self.coordinates.names)} coordinates, "
            f"{len(robot.muscles)} muscles (cable set '{self.cable_set.name}'), "
            f"{summarize(self.feasibility)}, {count} warning{'' if count == 1 else 's'}"
        )

    # JSON ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; numbers that are not finite become None or "inf"."""
        files = self.files
        return {
            "format": FORMAT,
            "name": self.robot.name,
            "caspr_name": files.name,
            "files": {
                "bodies": str(files.bodies),
                "cables": str(files.cables),
                "trajectories": str(files.trajectories) if files.trajectories else None,
                "operational_spaces": (
                    str(files.operational_spaces) if files.operational_spaces else None
                ),
            },
            "counts": {
                "links": len(self.bodies),
                "coordinates": len(self.coordinates.names),
                "muscles": len(self.robot.muscles),
                "motors": sum(body.actuated for body in self.bodies),
                "trajectories": len(self.trajectories),
                "operational_spaces": len(self.operational.spaces),
                "warnings": sum(item.count for item in self.warnings),
                "warnings_by_code": self.findings.counts(),
            },
            "links": [_link(body) for body in self.bodies],
            "coordinates": [
                {"caspr": label, "name": name, "index": int(index)}
                for label, name, index in zip(
                    self.coordinates.labels,
                    self.coordinates.names,
                    self.coordinates.index,
                    strict=True,
                )
            ],
            "renamed": [{"caspr": old, "name": new} for old, new in self.renamed],
            "cable_set": self.cable_set.name,
            "cable_sets": [_cable_set(item) for item in self.cables.sets],
            "operational_frame": self.robot.operational_frame,
            "operational_spaces": [
                {
                    "name": space.name,
                    "default": space is self.operational.default,
                    "entries": [dict(entry.__dict__) for entry in space.entries],
                }
                for space in self.operational.spaces
            ],
            "inertia": {
                "repairs": [
                    {
                        "link": item.link,
                        "problem": item.problem,
                        "before": item.before.tolist(),
                        "after": item.after.tolist(),
                    }
                    for item in self.inertia.repairs
                ],
                "mass_matrix_change": _number(self.inertia.mass_matrix_change),
                "mass_matrix_singular": self.inertia.singular,
                "problem": self.inertia.problem,
            },
            "trajectories": [
                _trajectory(item, self._feasibility_of(item)) for item in self.trajectories
            ],
            "findings": [dict(item.__dict__) for item in self.findings],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def _feasibility_of(self, item: CasprTrajectory) -> Feasibility | None:
        return next((f for f in self.feasibility if f.trajectory == item.name), None)

    # Markdown --------------------------------------------------------------------------------

    def to_markdown(self) -> str:
        """Return the report for people."""
        parts = [
            f"# Import of CASPR model {self.files.name}",
            self.summary() + ".",
            "## Warnings and notes\n\n" + findings_text(self.findings),
            self._coordinates_section(),
            self._cables_section(),
            self._inertia_section(),
            self._trajectories_section(),
        ]
        if self.operational.spaces:
            parts.append(self._operational_section())
        if self.renamed:
            rows = [[f"`{old}`", f"`{new}`"] for old, new in self.renamed]
            parts.append("## Names that changed\n\n" + table(["in CASPR", "here"], rows))
        return "\n\n".join(parts) + "\n"

    def _coordinates_section(self) -> str:
        rows = [
            [str(k + 1), f"`{label}`", f"`{name}`", str(int(index) + 1)]
            for k, (label, name, index) in enumerate(
                zip(
                    self.coordinates.labels,
                    self.coordinates.names,
                    self.coordinates.index,
                    strict=True,
                )
            )
        ]
        order = "the same" if self.coordinates.is_identity else "not the same"
        text = f"## Joint coordinates\n\nThe order of q is {order} as in CASPR.\n\n"
        return text + table(["CASPR q", "link.coordinate", "here", "our q"], rows)

    def _cables_section(self) -> str:
        rows = [
            [
                f"`{cable.name}`",
                cable.kind,
                "-" if cable.passive else f"{cable.force_min:g}..{cable.force_max:g} N",
                " ".join(f"`{via.link}`" for via in cable.path),
                "; ".join(
                    f"{key} = {' '.join(f'{x:g}' for x in value)}"
                    for key, value in cable.parameters.items()
                ),
            ]
            for cable in self.cable_set.cables
        ]
        head = ["cable", "kind", "tension", "path", "parameters in the file"]
        return f"## Cable set `{self.cable_set.name}`\n\n" + table(head, rows)

    def _inertia_section(self) -> str:
        check = self.inertia
        lines = ["## Inertia", ""]
        if check.problem:
            lines.append(f"The inertias cannot be repaired: {check.problem}.")
        else:
            lines += [f"- {item}" for item in check.repairs]
            if not check.repairs:
                lines.append("All tensors are those of rigid bodies.")
            lines += [
                "",
                "Relative change of M in the SDF, by repairs and by the small inertia of links "
                "that have none in CASPR, the largest that was found in random states and uphill "
                f"from the worst of them: {_text(check.mass_matrix_change)}.",
            ]
        if check.singular:
            lines += ["", "With the numbers of the file M is singular at the home position."]
        return "\n".join(lines)

    def _trajectories_section(self) -> str:
        rows = []
        for item in self.trajectories:
            found = self._feasibility_of(item)
            row = [f"`{item.name}`", item.space, item.kind.removesuffix("_trajectory")]
            row.append(f"{item.duration:g}")
            if found is None or found.skipped:
                row += ["-", "-", found.skipped if found else "not checked"]
            else:
                row += [
                    _share(found.static_fraction, found.first_static_failure),
                    _share(found.dynamic_fraction, found.first_dynamic_failure),
                    _remarks(found),
                ]
            rows.append(row)
        if not rows:
            return "## Trajectories\n\nNone."
        head = ["name", "space", "kind", "s", "static", "dynamic", "remarks"]
        text = (
            "Feasible share of the samples: is there a tension within the limits that holds the "
            "pose (static), that makes the motion (dynamic)? Where an operational trajectory is "
            "at rest, making the motion is holding the pose.\n\n"
        )
        return "## Trajectories\n\n" + text + table(head, rows)

    def _operational_section(self) -> str:
        rows = [
            [
                f"`{space.name}`" + (" (default)" if space is self.operational.default else ""),
                f"`{entry.frame}`",
                f"`{entry.link}`",
                entry.kind,
                entry.axes,
                "" if entry.angles == "none" else entry.angles,
            ]
            for space in self.operational.spaces
            for entry in space.entries
        ]
        head = ["set", "frame", "link", "kind", "axes", "angles"]
        return "## Operational spaces\n\n" + table(head, rows)


def _link(body: Body) -> dict[str, Any]:
    return {
        "number": body.number,
        "caspr_name": body.original_name,
        "link": body.link,
        "joint_type": body.joint_type.name,
        "joints": list(body.joints),
        "parent": body.parent,
        "motor": body.actuated,
    }


def _cable_set(item: CableSet) -> dict[str, Any]:
    return {
        "name": item.name,
        "cables": [
            {
                "caspr_name": cable.original_name,
                "name": cable.name,
                "kind": cable.kind,
                "passive": cable.passive,
                "tension_min": cable.force_min,
                "tension_max": _number(cable.force_max),
                "pulley": cable.pulley,
                "parameters": {key: value.tolist() for key, value in cable.parameters.items()},
                "path": [
                    {"link": via.link, "position": via.position.tolist()} for via in cable.path
                ],
            }
            for cable in item.cables
        ],
    }


def _trajectory(item: CasprTrajectory, found: Feasibility | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "caspr_name": item.original_name,
        "name": item.name,
        "space": item.space,
        "kind": item.kind,
        "duration": item.duration,
        "time_step": item.time_step,
        "operational_space": item.operational_space,
        "feasibility": None,
    }
    if found is not None:
        out["feasibility"] = {
            key: _number(value) if isinstance(value, float) else value
            for key, value in found.__dict__.items()
            if key not in ("trajectory", "space")
        }
    return out


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "inf"


def _text(value: float) -> str:
    return "infinite (M is singular without it)" if math.isinf(value) else f"{value:.2g}"


def _share(fraction: float, first: float | None) -> str:
    return f"{100 * fraction:.0f} %" + ("" if first is None else f", first fails at {first:.3g} s")


def _remarks(found: Feasibility) -> str:
    out = []
    if found.outside_limits is not None:
        out.append(f"outside the joint limits at {found.outside_limits:.3g} s")
    if found.unreachable is not None:
        out.append(f"out of reach at {found.unreachable:.3g} s")
    return "; ".join(out)
