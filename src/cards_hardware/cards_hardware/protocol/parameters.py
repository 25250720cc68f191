"""Parameters of a board: id, scope, default, range and unit of each.

On the wire and in flash a parameter is an i32; `scale` leads to SI units. Scope says what an index
means: ``board`` has index 0 only, ``muscle`` and ``joint`` count channels from 0.
"""

from __future__ import annotations

import enum
from typing import Literal, Self

from cards_hardware.protocol.schema import INT32_MAX

Scope = Literal["board", "muscle", "joint"]


class ParameterId(enum.IntEnum):
    """Parameter of a board.

    Attributes:
        scope: What the index counts.
        default: Value of a board that was never set up, wire units.
        minimum: Least value allowed, wire units.
        maximum: Largest value allowed, wire units.
        scale: SI value of one wire unit, [unit].
        unit: SI unit, "" for plain numbers.
        text: What it does.
    """

    scope: Scope
    default: int
    minimum: int
    maximum: int
    scale: float
    unit: str
    text: str

    def __new__(  # noqa: D102, PLR0917
        cls,
        value: int,
        scope: Scope,
        default: int,
        minimum: int,
        maximum: int,
        scale: float,
        unit: str,
        text: str,
    ) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.scope = scope
        member.default = default
        member.minimum = minimum
        member.maximum = maximum
        member.scale = scale
        member.unit = unit
        member.text = text
        return member

    # id, scope, default, minimum, maximum, scale, unit, text
    # the board
    NODE = 0x01, "board", 1, 1, 126, 1, "", "address of the board"
    MUSCLES = 0x02, "board", 0, 0, 16, 1, "", "muscles that it drives; only while DISARMED"
    JOINTS = 0x03, "board", 0, 0, 16, 1, "", "joint sensors that it reads; only while DISARMED"
    SERVICE_MODE = 0x04, "board", 0, 0, 1, 1, "", "1: currents may be commanded; not saved"
    STATE_RATE = 0x05, "board", 500, 125, 1000, 1, "Hz", "rate of STATE_FAST; divides 1000"
    # watchdog
    WATCHDOG_HOLD = 0x10, "board", 24, 5, 1000, 1e-3, "s", "no fresh command: HOLD"
    WATCHDOG_RELAX = 0x11, "board", 100, 10, 5000, 1e-3, "s", "no fresh command: RELAX"
    WATCHDOG_DISARM = 0x12, "board", 1000, 50, 60000, 1e-3, "s", "no fresh command: DISARMED"
    HEARTBEAT_TIMEOUT = (
        0x13,
        "board",
        100,
        20,
        5000,
        1e-3,
        "s",
        "no heartbeat while ARMED: DISARMED",
    )
    RELAX_TIME = 0x14, "board", 400, 10, 5000, 1e-3, "s", "length of the ramp to the safe tension"
    COMMAND_AGE = 0x15, "board", 24000, 1000, 1000000, 1e-6, "s", "older commands are refused"
    AGE_LEAK = 0x16, "board", 200, 0, 10000, 1e-6, "", "upward leak of the least transit time, s/s"
    RANGE_STRIKES = 0x17, "board", 3, 1, 100, 1, "", "commands out of range in a row until HOLD"
    # supply, drives, processor
    VBUS_MIN = 0x20, "board", 18000, 0, 65000, 1e-3, "V", "supply voltage below: fault"
    VBUS_MAX = 0x21, "board", 30000, 0, 65000, 1e-3, "V", "supply voltage above: fault"
    DRIVE_TIMEOUT = 0x22, "board", 5, 1, 1000, 1e-3, "s", "drives silent for longer: fault"
    DRIVE_ERRORS = 0x23, "board", 50, 1, 1000, 1, "", "damaged drive frames in a second: fault"
    TICK_LATE = 0x24, "board", 1500, 1000, 100000, 1e-6, "s", "a longer tick counts as late"
    TICK_LATE_MAX = 0x25, "board", 100, 1, 1000, 1, "", "late ticks in a second: fault"
    ARM_TENSION = 0x26, "board", 500, 0, 10000, 0.1, "N", "arming needs less in every muscle"
    MUSCLES_LOST = 0x27, "board", 3, 1, 16, 1, "", "so many relaxed muscles are a fault"
    AMBIENT = 0x28, "board", 2500, -4000, 8000, 0.01, "C", "temperature of the surroundings"
    OVERSPEED = 0x29, "board", 150, 101, 1000, 0.01, "", "part of rate_max that is a fault"
    OVER_TENSION = 0x2A, "board", 120, 101, 1000, 0.01, "", "part of tension_max that is a fault"
    LENGTH_MARGIN = 0x2B, "board", 10000, 0, 1000000, 1e-6, "m", "beyond the window until a fault"
    # sensors of a muscle
    ENCODER_SCALE = 0x40, "muscle", 1000, 1, 1000000, 1e-9, "m", "length per encoder count"
    ENCODER_SIGN = 0x41, "muscle", 1, -1, 1, 1, "", "1: counts grow with length; -1: they fall"
    LENGTH_OFFSET = 0x42, "muscle", 0, -INT32_MAX, INT32_MAX, 1e-6, "m", "length at count 0"
    LOAD_SCALE = 0x43, "muscle", 100, 1, 10000, 1e-3, "N", "tension per count of the load cell"
    LOAD_ZERO = 0x44, "muscle", 0, -32767, 32767, 1, "", "counts of the load cell at tension 0"
    LOAD_MAX = 0x45, "muscle", 5400, 1, 32767, 1, "", "counts from zero where it saturates"
    RATE_FILTER = 0x46, "muscle", 100, 1, 500, 1, "Hz", "corner of the filter of the length rate"
    # tension loop
    CURRENT_SCALE = 0x50, "muscle", 50000, 100, 1000000, 1e-3, "N/A", "k_I: tension per current"
    KP = 0x51, "muscle", 10000, 0, 1000000, 1e-6, "A/N", "proportional gain of the tension loop"
    KI = 0x52, "muscle", 500, 0, 1000000, 1e-3, "A/(N s)", "integral gain of the tension loop"
    INTEGRAL_MAX = 0x53, "muscle", 1000, 0, 32000, 1e-3, "A", "limit of the integral part"
    # current and temperature of a motor
    CURRENT_CONTINUOUS = 0x60, "muscle", 4000, 1, 32000, 1e-3, "A", "current it stands for ever"
    OVERLOAD_TIME = 0x61, "muscle", 4000, 10, 600000, 1e-3, "s", "time constant of I2t"
    WINDING_RESISTANCE = 0x62, "muscle", 600, 1, 1000000, 1e-3, "Ohm", "resistance at 25 C"
    CORE_RESISTANCE = 0x63, "muscle", 2000, 1, 1000000, 1e-3, "K/W", "winding to housing"
    CORE_CAPACITY = (
        0x64,
        "muscle",
        30000,
        1,
        100000000,
        1e-3,
        "J/K",
        "heat capacity of the winding",
    )
    HOUSING_RESISTANCE = 0x65, "muscle", 6000, 1, 1000000, 1e-3, "K/W", "housing to surroundings"
    HOUSING_CAPACITY = 0x66, "muscle", 200000, 1, 100000000, 1e-3, "J/K", "of the housing"
    # plausibility of a muscle
    SLACK_TENSION = 0x70, "muscle", 20, 0, 1000, 0.1, "N", "less while winding is slack"
    SLACK_LENGTH = 0x71, "muscle", 5000, 100, 1000000, 1e-6, "m", "so much winding without tension"
    RUPTURE_DROP = 0x72, "muscle", 50, 1, 100, 0.01, "", "part of the tension lost at once"
    RUPTURE_TIME = 0x73, "muscle", 5, 1, 20, 1e-3, "s", "what 'at once' means"
    RUPTURE_TENSION = 0x74, "muscle", 200, 1, 10000, 0.1, "N", "only from this tension on"
    RUPTURE_RATE = 0x75, "muscle", 500, 0, 32000, 1e-4, "m/s", "and the muscle winds faster by"
    ENCODER_JUMP = 0x76, "muscle", 5000, 1, 1000000, 1e-6, "m", "more in one tick is a jump"
    STUCK_TIME = 0x77, "muscle", 500, 10, 60000, 1e-3, "s", "load unchanged for so long"
    STUCK_CURRENT = 0x78, "muscle", 500, 1, 32000, 1e-3, "A", "while current changed so much"
    RESIDUAL_TENSION = (
        0x79,
        "muscle",
        1000,
        1,
        32000,
        0.1,
        "N",
        "difference of T and k_I I allowed",
    )
    RESIDUAL_TIME = 0x7A, "muscle", 200, 1, 60000, 1e-3, "s", "for longer: flag"
    SLACK_TAKEUP = 0x7B, "muscle", 50000, 100, 10000000, 1e-6, "m", "slack taken up while ARMED"
    RESIDUAL_SHARE = (
        0x7C,
        "muscle",
        50,
        0,
        1000,
        0.01,
        "",
        "of T, allowed besides RESIDUAL_TENSION",
    )
    # joints
    JOINT_SCALE = 0x90, "joint", 1000, -1000000000, 1000000000, 1e-9, "rad", "angle per count"
    JOINT_ZERO = 0x91, "joint", 0, -INT32_MAX, INT32_MAX, 1, "", "counts at angle 0"
