"""Which actuator model each muscle has, and where its states are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.muscles.actuators.cable import BlankevoortLigament, ElasticCable, IdealCable
from cards_core.muscles.actuators.heated import heated
from cards_core.muscles.actuators.hill import ElasticTendonMuscle, RigidTendonMuscle
from cards_core.muscles.actuators.model import Model
from cards_core.muscles.actuators.motor_cable import HeatedMotorCable, MotorCable
from cards_core.muscles.actuators.pneumatic import McKibbenMuscle, ValveMcKibbenMuscle
from cards_core.muscles.actuators.series_elastic import (
    HeatedSeriesElasticUnit,
    SeriesElasticUnit,
)
from cards_core.muscles.actuators.wound_cable import HeatedWoundCable, WoundCable
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic, SeriesElastic
from cards_core.robot.elements import Muscle

INPUTS = ("lengths", "rates", "kinds", "values")
"""What every muscle is given in a step."""

LARGEST_INPUT = 1e6
"""Lengths [m] and rates [m/s] beyond are cut, so that nothing overflows."""

LARGEST_VALUE = 1e9
"""Commanded values beyond are cut."""


def _warm(model: type[Model], actuator: Cable | Pneumatic | Hill) -> type[Model]:
    """Return the model of an actuator without a motor, with temperatures if it has a group."""
    return model if actuator.thermal is None else heated(model)


def _cable(actuator: Cable) -> type[Model]:
    if actuator.motor is not None and actuator.stiffness is not None:
        return WoundCable if actuator.thermal is None else HeatedWoundCable
    if actuator.motor is not None:
        return MotorCable if actuator.thermal is None else HeatedMotorCable
    return _warm(IdealCable if actuator.stiffness is None else ElasticCable, actuator)


def _series_elastic(actuator: SeriesElastic) -> type[Model]:
    return SeriesElasticUnit if actuator.thermal is None else HeatedSeriesElasticUnit


def _pneumatic(actuator: Pneumatic) -> type[Model]:
    return _warm(McKibbenMuscle if actuator.valve is None else ValveMcKibbenMuscle, actuator)


def _hill(actuator: Hill) -> type[Model]:
    return _warm(RigidTendonMuscle if actuator.rigid_tendon else ElasticTendonMuscle, actuator)


def _ligament(_actuator: Ligament) -> type[Model]:
    return BlankevoortLigament


MODELS: Mapping[str, Callable[[Any], type[Model]]] = {
    Cable.kind: _cable,
    SeriesElastic.kind: _series_elastic,
    Pneumatic.kind: _pneumatic,
    Hill.kind: _hill,
    Ligament.kind: _ligament,
}
"""By kind of actuator, the function that picks the model for its parameters."""


def model_type(actuator: Any) -> type[Model]:
    """Return the model of an actuator.

    Raises:
        UnknownNameError: There is no model for its kind; names the kinds that have one.
    """
    check_choice(actuator.kind, "actuator model", MODELS)
    return MODELS[actuator.kind](actuator)


class Group:
    """Muscles of one model and variant, and where their states are.

    Attributes:
        model: The equations and parameters.
        rows: Muscle indices, shape (n,).
        places: State indices, shape (states, n).
    """

    def __init__(
        self, model: Model, rows: npt.NDArray[np.intp], places: npt.NDArray[np.intp]
    ) -> None:
        self.model = model
        self.rows = rows
        self.places = places


def make_groups(muscles: Sequence[Muscle], dt: float) -> tuple[list[Group], tuple[str, ...], int]:
    """Sort muscles into groups.

    Returns:
        The groups, the names of the published states, and the number of all states.
    """
    types = [model_type(muscle.actuator) for muscle in muscles]
    names = [
        f"{muscle.name}/{state}"
        for muscle, kind in zip(muscles, types, strict=True)
        for state in kind.published
    ]
    keys: dict[Any, list[int]] = {}
    places: list[list[int]] = []
    seen, hidden = 0, len(names)
    for row, (muscle, kind) in enumerate(zip(muscles, types, strict=True)):
        keys.setdefault((kind, kind.variant(muscle.actuator)), []).append(row)
        shown, more = len(kind.published), len(kind.hidden)
        places.append([*range(seen, seen + shown), *range(hidden, hidden + more)])
        seen, hidden = seen + shown, hidden + more
    groups = [
        Group(
            kind([muscles[row] for row in rows], dt),
            np.array(rows),
            np.array([places[row] for row in rows], dtype=np.intp).reshape(len(rows), -1).T,
        )
        for (kind, _), rows in keys.items()
    ]
    return groups, tuple(names), hidden
