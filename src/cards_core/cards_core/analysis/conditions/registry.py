"""All conditions by name, with their options: what jobs, workers and the command line offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cards_core.analysis.conditions.acceleration import (
    AccelerationMargin,
    AccelerationMarginOptions,
)
from cards_core.analysis.conditions.base import Condition, Options
from cards_core.analysis.conditions.kinematics import (
    ConditionNumber,
    ConditionNumberOptions,
    ForceAmplification,
    ForceAmplificationOptions,
    JointLimits,
    JointLimitsOptions,
    Manipulability,
    ManipulabilityOptions,
    ModifiedTensionFactor,
    ModifiedTensionFactorOptions,
    TensionFactor,
    TensionFactorOptions,
    UnilateralDexterity,
    UnilateralDexterityOptions,
    WrenchClosure,
    WrenchClosureOptions,
)
from cards_core.analysis.conditions.wrench_feasibility import (
    CapacityMargin,
    CapacityMarginOptions,
    DynamicFeasible,
    DynamicFeasibleOptions,
    Static,
    StaticOptions,
    WrenchFeasible,
    WrenchFeasibleOptions,
)
from cards_core.analysis.interference import Interference, InterferenceOptions
from cards_core.checks import check_choice
from cards_core.dynamics import Dynamics


@dataclass(frozen=True)
class ConditionKind:
    """An entry of `CONDITIONS`.

    Attributes:
        factory: Makes the condition of a dynamics backend and options; raises `ConditionError`
            where the robot or the options do not allow it.
        options: Type of the options; ``parameters()`` has their
            declarations.
        text: What it asks, in one line.
    """

    factory: Callable[[Dynamics, Any], Condition]
    options: type[Options]
    text: str


CONDITIONS: dict[str, ConditionKind] = {
    "wrench_closure": ConditionKind(
        WrenchClosure,
        WrenchClosureOptions,
        "every wrench can be made with tensions that have no upper limit",
    ),
    "tension_factor": ConditionKind(
        TensionFactor,
        TensionFactorOptions,
        "how even the tensions of the best internal load are: largest min f / max f",
    ),
    "wrench_feasible": ConditionKind(
        WrenchFeasible,
        WrenchFeasibleOptions,
        "gravity and all required wrenches can be carried within the limits of the tensions",
    ),
    "capacity_margin": ConditionKind(
        CapacityMargin,
        CapacityMarginOptions,
        "distance of the required wrenches from the limit of what the muscles can do",
    ),
    "static": ConditionKind(
        Static, StaticOptions, "the pose can be held: gravity exactly, at any rank of L"
    ),
    "dynamic": ConditionKind(
        DynamicFeasible,
        DynamicFeasibleOptions,
        "all accelerations of a set are possible, from rest or at a velocity",
    ),
    "acceleration_margin": ConditionKind(
        AccelerationMargin,
        AccelerationMarginOptions,
        "from rest, at least this acceleration is possible in every direction (SEACM)",
    ),
    "condition_number": ConditionKind(
        ConditionNumber, ConditionNumberOptions, "largest over smallest singular value of L"
    ),
    "manipulability": ConditionKind(
        Manipulability, ManipulabilityOptions, "sqrt(det L'L), the product of the singular values"
    ),
    "modified_tension_factor": ConditionKind(
        ModifiedTensionFactor,
        ModifiedTensionFactorOptions,
        "tension factor over condition number, the better one with or without a muscle",
    ),
    "unilateral_dexterity": ConditionKind(
        UnilateralDexterity,
        UnilateralDexterityOptions,
        "dexterity of actuators that only pull, 0..1",
    ),
    "force_amplification": ConditionKind(
        ForceAmplification,
        ForceAmplificationOptions,
        "bound of the tensions per unit wrench for actuators that only pull",
    ),
    "joint_limits": ConditionKind(
        JointLimits, JointLimitsOptions, "the coordinates are within the limits of the joints"
    ),
    "interference": ConditionKind(
        Interference,
        InterferenceOptions,
        "no muscle comes closer to another one or to a link than allowed",
    ),
}
"""Name to condition."""


def make_condition(
    dynamics: Dynamics, name: str, options: Options | Mapping[str, Any] | None = None
) -> Condition:
    """Make a condition for one thread.

    Args:
        dynamics: Of the robot; it and the condition belong to one thread.
        name: A key of `CONDITIONS`.
        options: As an object, or as JSON; the defaults hold for what is missing.

    Raises:
        UnknownNameError: There is no condition, or no option, of this name.
        ParameterError: An option of the wrong type or out of range.
        ConditionError: The robot or the options do not allow it.
    """
    check_choice(name, "condition", CONDITIONS)
    kind = CONDITIONS[name]
    if options is None or isinstance(options, Mapping):
        options = kind.options.from_json(options or {})
    return kind.factory(dynamics, options)
