"""What a board is told about the muscle units behind it: the parameters of its flash.

On a real robot these numbers come from data sheets and from ``./cards calibrate``. They are whole
numbers in the units of the parameter table, so a scale is right to about 1e-3, as a measured one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cards_core.typing import Array
from cards_hardware.hil.design import Calibration, UnitDesign
from cards_hardware.protocol.parameters import ParameterId as P

LOOP_GAIN = 0.25
"""Proportional gain of the tension loop times k_I: with a delay of two ticks it must stay well
below one, the feed-forward does the rest."""

LOOP_RATE = 80.0
"""Integral gain times k_I, [1/s]: how fast friction of the winder is corrected."""

PATIENCE: tuple[tuple[P, float], ...] = ((P.DRIVE_TIMEOUT, 0.1), (P.TICK_LATE_MAX, 1000.0))
"""What a bench must allow that a robot must not: plant and board share a machine that now and then
does something else for some milliseconds. The watchdog of commands stays as it is."""

Setting = tuple[P, int, int]
"""Parameter, index, value in the units of the table."""


def settings(design: UnitDesign, calibration: Calibration, *, node: int = 1) -> Iterator[Setting]:
    """Yield the parameters of one board: counts first, as the rest needs them.

    Args:
        design: What its units are made of.
        calibration: Of its units and joint encoders, see `Calibration.of`.
        node: Address of the board.
    """
    muscles, joints = len(calibration.sign), len(calibration.joint_zero)
    yield P.NODE, 0, node
    yield P.MUSCLES, 0, muscles
    yield P.JOINTS, 0, joints
    for parameter, value in PATIENCE:
        yield parameter, 0, round(value / parameter.scale)
    thermal = design.thermal
    gain = calibration.current_scale
    same = np.ones(muscles)
    load_max = np.minimum(np.floor(design.load_range / calibration.load_scale), 2**15 - 2)
    # a motor bears for ever what heats its winding to 100 degC
    winding = thermal.winding_resistance + thermal.housing_resistance
    warm = design.resistance * (1.0 + thermal.copper_coefficient * 75.0)
    continuous = math.sqrt((100.0 - thermal.ambient) / (winding * warm))
    columns: list[tuple[P, Array]] = [
        (P.ENCODER_SCALE, calibration.wire_per_count),
        (P.ENCODER_SIGN, calibration.sign.astype(float)),
        (P.LENGTH_OFFSET, calibration.length_offset),
        (P.LOAD_SCALE, calibration.load_scale),
        (P.LOAD_ZERO, calibration.load_zero.astype(float)),
        (P.LOAD_MAX, load_max),
        (P.CURRENT_SCALE, gain),
        (P.KP, LOOP_GAIN / gain),
        (P.KI, LOOP_RATE / gain),
        (P.CURRENT_CONTINUOUS, max(continuous, 1.0) * same),
        (P.WINDING_RESISTANCE, design.resistance * same),
        (P.CORE_RESISTANCE, thermal.winding_resistance * same),
        (P.CORE_CAPACITY, thermal.winding_heat_capacity * same),
        (P.HOUSING_RESISTANCE, thermal.housing_resistance * same),
        (P.HOUSING_CAPACITY, thermal.housing_heat_capacity * same),
        (P.JOINT_SCALE, calibration.joint_scale),
        (P.JOINT_ZERO, calibration.joint_zero.astype(float)),
    ]
    for parameter, values in columns:
        for index, value in enumerate(values):
            yield parameter, index, round(float(value) / parameter.scale)
