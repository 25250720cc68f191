"""Make muscles of CASPR's cables.

CASPR's own dynamics commands the tension of every cable, whatever its kind; elasticity only
matters for its stiffness analysis. Hence all kinds become cables that follow the commanded
tension, except where one of our types says the same:

* ``cable_linear_spring`` has the stiffness K/l of a wire with K = EA in [N]: an elastic cable with
  this stiffness at the length it has at ``q_initial``;
* ``cable_passive_linear_spring`` pulls with K (l - l0), K in [N/m], and takes no command: a
  ligament of K l0 [N] per strain. CASPR's also pushes when it is shorter than l0, ours does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cards_core.checks import LARGEST
from cards_core.dynamics.interface import make_dynamics
from cards_core.formats.caspr.cables import NOT_IN_CASPR, PASSIVE, PULLEYS, Cable, CableSet
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.sdf.checks import home_poses
from cards_core.formats.sdf.muscle_path import pulley_problem
from cards_core.robot.actuators import Actuator, Ligament
from cards_core.robot.actuators import Cable as CableActuator
from cards_core.robot.elements import Muscle, PathElement, Pulley, ViaPoint
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

SPRING = "cable_linear_spring"

TOE_STRAIN = 1e-6
"""Of the ligament of a passive spring: its tension differs from the linear one by K l0 5e-7."""


REMARKS: Mapping[str, str] = {
    "passive-spring-pulls-only": "imported as a ligament, which pulls as the spring does; CASPR's "
    "spring also pushes when it is shorter than l0, this one is slack",
    "passive-spring-left-out": "not simulated and no muscle was made: K and l0 must be positive",
    "spring-stiffness": "imported as an elastic cable with the constant stiffness K/l at "
    "q_initial; CASPR's changes with l, and matters to its stiffness analysis only",
    "cable-kind-undefined": "imported as a tension-commanded cable",
    "elasticity-not-simulated": "imported as a tension-commanded cable without elasticity",
}
"""What was done with the cables of a kind, by the code of the finding."""


def attach_cables(
    robot: Robot, home: Robot, cable_set: CableSet, source: str, findings: FindingList
) -> Robot:
    """Return the robot with the cables of a set as muscles, in CASPR's order.

    Args:
        robot: The robot without muscles.
        home: The same with the home position that its SDF will have: within the limits.
        cable_set: The cables.
        source: Their file, for messages.
        findings: Takes one remark per kind of cable and of pulley that differs from CASPR.
    """
    paths = _paths(home, cable_set, source, findings)
    ideal = tuple(Muscle(cable.name, paths[cable.name]) for cable in cable_set.cables)
    dynamics = make_dynamics(replace(robot, muscles=ideal), "numeric")
    lengths = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv)).muscle_lengths
    muscles: list[Muscle] = []
    remarks: dict[tuple[str, str], list[Cable]] = {}
    for cable, length in zip(cable_set.cables, lengths, strict=True):
        actuator, code = _actuator(cable, float(length))
        if code:
            remarks.setdefault((cable.kind, code), []).append(cable)
        if actuator is None:
            continue
        muscle = Muscle(cable.name, paths[cable.name], actuator=actuator, line=cable.line)
        if not cable.passive:
            muscle = replace(muscle, tension_min=cable.force_min, tension_max=cable.force_max)
        muscles.append(muscle)
    for (kind, code), cables in remarks.items():
        findings.warn(
            code,
            f"cable set '{cable_set.name}'",
            f"{kind} ({', '.join(cable.name for cable in cables)}): {_remark(code, cables)}",
            at=FilePlace(source, cables[0].line),
        )
    return replace(robot, muscles=tuple(muscles))


def _actuator(cable: Cable, length: float) -> tuple[Actuator | None, str]:
    """Return the actuator of a cable, None if it has none, and the code of the remark to make."""
    stiffness = _positive(cable, "K")
    if cable.kind == PASSIVE:
        rest = _positive(cable, "l0")
        if stiffness is None or rest is None or not 0.0 < stiffness * rest < LARGEST:
            return None, "passive-spring-left-out"
        ligament = Ligament(
            stiffness=stiffness * rest, slack_length=rest, toe_strain=TOE_STRAIN, damping=0.0
        )
        return ligament, "passive-spring-pulls-only"
    if cable.kind == SPRING and stiffness is not None and length > 0.0:
        at_home = stiffness / length
        if 0.0 < at_home < LARGEST:
            return CableActuator(stiffness=at_home), "spring-stiffness"
    if cable.kind in NOT_IN_CASPR:
        return CableActuator(), "cable-kind-undefined"
    return CableActuator(), "" if cable.kind == "cable_ideal" else "elasticity-not-simulated"


def _positive(cable: Cable, tag: str) -> float | None:
    values = cable.parameters.get(tag, np.zeros(0))
    return float(values[0]) if len(values) == 1 and values[0] > 0.0 else None


def _remark(code: str, cables: list[Cable]) -> str:
    pulleys = tuple(f"{tag}/" for tag in PULLEYS)
    keys = {k for cable in cables for k in cable.parameters if not k.startswith(pulleys)}
    return REMARKS[code] + (f"; the report lists {', '.join(sorted(keys))}" if keys else "")


# Pulleys -------------------------------------------------------------------------------------


def _paths(
    home: Robot, cable_set: CableSet, source: str, findings: FindingList
) -> dict[str, tuple[PathElement, ...]]:
    """Return the paths by name of the cable, with via points for pulleys that cannot be."""
    poses = home_poses(home)
    paths: dict[str, tuple[PathElement, ...]] = {}
    for cable in cable_set.cables:
        first = cable.path[0]
        if cable.pulley is None:
            paths[cable.name] = cable.path
            continue
        problem = "there is no wheel (radius 0 or no direction of the incoming cable)"
        if isinstance(first, Pulley):
            problem = _home_problem(first, cable.path[1], poses)
            lost = PULLEYS[cable.pulley].others
            if not problem and lost:
                findings.warn(
                    "winch-left-out",
                    f"cable '{cable.name}'",
                    f"{cable.pulley}: imported as a pulley at its {PULLEYS[cable.pulley].point}; "
                    f"the travel of the winch is not simulated ({', '.join(lost)})",
                    at=FilePlace(source, cable.line),
                )
        if problem:
            findings.warn(
                "pulley-as-via-point",
                f"cable '{cable.name}'",
                f"{cable.pulley}: the path starts at a plain via point without a wheel: {problem}",
                at=FilePlace(source, cable.line),
            )
            first = ViaPoint(first.link, first.position)
        paths[cable.name] = (first, *cable.path[1:])
    return paths


def _home_problem(pulley: Pulley, after: PathElement, poses: Mapping[str, Pose]) -> str:
    assert isinstance(after, ViaPoint)
    point = poses[after.link].apply(after.position)
    problem = pulley_problem(pulley, poses[pulley.link].inverse().apply(point))
    return "" if problem is None else f"at the home pose the next point is {problem[0]}"
