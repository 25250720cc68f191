"""Enumerations of the protocol: what the numbers and bits in its messages mean.

They go into the C header as they stand here. A number that was once released keeps its meaning.

Parameters of a board have an id, scope, default, range and unit each. On the wire and in flash a
parameter is an i32; `scale` leads to SI units. Scope says what an index means: ``board`` has index
0 only, ``muscle`` and ``joint`` count channels from 0.
"""

from __future__ import annotations

import enum
from typing import Literal, Self

from cards_hardware.protocol.schema import INT32_MAX


class Described(enum.IntEnum):
    """Number with a sentence about it, `text`."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Self:  # noqa: D102
        member = int.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member


class DescribedFlag(enum.IntFlag):
    """Bit with a sentence about it, `text`."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Self:  # noqa: D102
        member = int.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member


class State(Described):
    """State of a board."""

    BOOT = 0, "self-test after reset"
    DISARMED = 1, "drives off, current 0"
    ARMED = 2, "drives on, every muscle at its safe tension"
    ACTIVE = 3, "commands act"
    HOLD = 4, "no fresh command: targets frozen, no tension increases"
    RELAX = 5, "tensions ramp to the safe ones; commands are refused"
    FAULT = 6, "latched; only a clear request with a token leads on"
    ESTOP = 7, "latched; safe tensions at once; only a clear request with a token leads on"


class Request(Described):
    """What a STATE_REQUEST asks for."""

    DISARM = 1, "to DISARMED, from every state that is not latched; needs no token"
    ARM = 2, "from DISARMED or RELAX to ARMED; needs the token of the newest IDENT"
    RELAX = 3, "from ARMED, ACTIVE or HOLD to RELAX; needs no token"
    CLEAR = (
        4, "from FAULT, ESTOP or DISARMED: clears what is latched, DISARMED; needs the token",
    )  # fmt: skip


class AckCode(Described):
    """Answer to a frame; every refusal has a counter in STATE_SLOW, in this order from 1 on."""

    OK = 0, "done"
    VERSION = 1, "major version of the frame is not ours"
    LENGTH = 2, "payload shorter than the message, or than its counts say"
    RANGE = 3, "a value is invalid (NaN) or beyond its limits; detail names the muscle"
    STATE = 4, "not allowed in this state"
    UNKNOWN = 5, "no such message type, parameter or action"
    BUSY = 6, "cannot be done now, try again"
    REPLAYED = 7, "sequence number or time stamp did not advance"
    STALE = 8, "command older than the board accepts"
    NODE = 9, "addressed to another node; counted, never answered"
    TOKEN = 10, "arm token wrong, used or outdated"


class Fault(DescribedFlag):
    """Faults of a board; each one leads to FAULT unless its text says otherwise."""

    SELF_TEST = 1 << 0, "self-test after reset failed"
    PARAMETERS = 1 << 1, "parameters in flash damaged, defaults in use; warns, refuses to arm"
    LIMITS = 1 << 2, "limits contradict themselves; refuses to arm"
    DRIVE_TIMEOUT = 1 << 3, "drives did not answer for too many ticks"
    DRIVE_FRAME = 1 << 4, "too many damaged frames from the drives"
    VBUS_LOW = 1 << 5, "supply voltage below its minimum"
    VBUS_HIGH = 1 << 6, "supply voltage above its maximum"
    OVERTEMPERATURE = 1 << 7, "a motor's housing is measured hotter than its hard limit"
    MUSCLE = 1 << 8, "too many muscles relaxed by themselves to hold the robot"
    SENSOR = 1 << 9, "a length or tension is invalid; refuses to arm, later its muscle relaxes"
    TICK = 1 << 10, "control ticks came late too often"
    MEMORY = 1 << 11, "a constant pattern in memory or a stack guard has changed"
    FLASH = 1 << 12, "flash could not be written or verified; warns"
    WATCHDOG_RESET = 1 << 13, "the last reset was made by the watchdog; warns, refuses to arm"
    ESTOP_LINE = 1 << 14, "the emergency line is open; leads to ESTOP"
    INTERNAL = 1 << 15, "the program found itself in a state that cannot be"
    UNSAVED = 1 << 16, "parameters differ from flash; refuses to arm until saved or dropped"


class MuscleFlag(DescribedFlag):
    """State and faults of one muscle; LATCHED ones stay until a clear request."""

    LENGTH_INVALID = 1 << 0, "length sensor gives no valid value"
    TENSION_INVALID = 1 << 1, "load cell gives no valid value"
    CURRENT_INVALID = 1 << 2, "drive gives no valid current"
    TEMPERATURE_INVALID = 1 << 3, "temperature sensor gives no valid value"
    SLACK = 1 << 4, "winding without tension: wire off its pulley or hook"
    RUPTURE = 1 << 5, "tension fell while the motor sped up: wire broken"
    ENCODER_JUMP = 1 << 6, "length changed more in a tick than it can"
    LOAD_STUCK = 1 << 7, "load cell does not change while the current does"
    LOAD_SATURATED = 1 << 8, "load cell at the end of its range"
    RESIDUAL = 1 << 9, "tension does not fit the current"
    SOFT_TEMPERATURE = 1 << 10, "above the soft temperature, tension limit derated"
    HARD_TEMPERATURE = 1 << 11, "above the hard temperature"
    TENSION_LIMITED = 1 << 12, "wanted tension cut to a limit"
    SLEW_LIMITED = 1 << 13, "wanted tension changes as fast as allowed"
    RATE_LIMITED = 1 << 14, "muscle moves faster than allowed, tension reduced"
    LENGTH_LOW = 1 << 15, "length below its window, no more pull"
    LENGTH_HIGH = 1 << 16, "length above its window, tension held against more"
    CURRENT_LIMITED = 1 << 17, "current at its maximum"
    OVERLOAD = 1 << 18, "I2t: current at what the motor stands for long"
    RELAXED = 1 << 19, "taken to its safe tension by the board itself"
    LIMITS_MISSING = 1 << 20, "no limits loaded for this muscle"
    OVERSPEED = 1 << 21, "much faster than allowed"
    OVER_TENSION = 1 << 22, "much more tension than allowed"
    LENGTH_WINDOW = 1 << 23, "length outside its window by more than the margin"


class FastFlag(DescribedFlag):
    """Flags of STATE_FAST."""

    HOST_ALIVE = 1 << 0, "heartbeats of the host arrive"
    COMMAND_FRESH = 1 << 1, "the command in force is younger than the first watchdog time"
    LIMITS_LOADED = 1 << 2, "limits were loaded since reset"
    DRIVES_ON = 1 << 3, "drives are enabled"
    DRIVES_VALID = 1 << 4, "the drives answered in this tick"
    SERVICE = 1 << 5, "service mode: currents may be commanded"
    ESTOP_LINE = 1 << 6, "the emergency line is open"
    MUSCLE_FLAGS = 1 << 7, "a muscle has a flag, see STATE_SLOW"
    SIMULATED = 1 << 8, "sensors and drives are simulated"
    FAULT = 1 << 9, "the board has a fault, see STATE_SLOW"


class Caps(DescribedFlag):
    """What a board can do, in IDENT."""

    IMPEDANCE = 1 << 0, "CMD_IMPEDANCE"
    TENSION = 1 << 1, "CMD_TENSION"
    CURRENT = 1 << 2, "CMD_CURRENT in service mode"
    PRESSURE = 1 << 3, "CMD_PRESSURE"
    LENGTH = 1 << 4, "measures muscle lengths"
    LOAD = 1 << 5, "measures tensions"
    TEMPERATURE = 1 << 6, "measures temperatures"
    JOINTS = 1 << 7, "measures joint angles"
    FLASH = 1 << 8, "keeps parameters over power cycles"
    ESTOP_LINE = 1 << 9, "reads the emergency line"


class EventCode(Described):
    """What an EVENT reports; `value` means what the text says."""

    BOOT = 1, "the board started; value: reset cause"
    STATE = 2, "state changed; value: old << 8 | new"
    REFUSED = 3, "a frame was refused; value: message type << 8 | AckCode"
    RANGE = 4, "a command was out of range; value: the value refused, wire units"
    COMMAND_LATE = 5, "no fresh command, HOLD; value: age [us]"
    COMMAND_LOST = 6, "no fresh command, RELAX; value: age [us]"
    COMMAND_GONE = 7, "no fresh command, DISARMED; value: age [us]"
    HEARTBEAT_LOST = 8, "the host fell silent; value: age [us]"
    ESTOP = 9, "emergency stop; value: EstopReason"
    FAULT_SET = 10, "a fault appeared; value: its bit of Fault"
    FAULT_CLEARED = 11, "faults were cleared; value: bits of Fault before"
    MUSCLE_FLAG = 12, "a flag of a muscle appeared; value: its bit of MuscleFlag"
    MUSCLE_RELAXED = 13, "the board relaxed a muscle; value: bits of MuscleFlag"
    DERATED = 14, "tension limit lowered by temperature; value: limit [0.1 N]"
    LIMITS_LOADED = 15, "new limits in force; value: CRC as signed number"
    PARAMETER = 16, "a parameter was changed; value: its id << 8 | index"
    SAVED = 17, "parameters written to flash; value: bytes"
    CALIBRATED = 18, "a calibration was made; value: CalibrateAction"
    DRIVE_LOST = 19, "drives do not answer; value: ticks"
    TICK_LATE = 20, "a control tick came late; value: its length [us]"
    SERVICE = 21, "service mode changed; value: 0 or 1"
    SESSION = 22, "a session began with HELLO; value: its nonce as signed number"
    FLASH = 23, "parameters are defaults; value: 0 flash blank, 1 damaged; 2: older ones"
    DRIVE_BACK = 24, "drives answer again"
    CRASH = 25, "the program had crashed; value: address of the instruction, 0 unknown"
    RELEASED = 26, "without the host that armed: safe tensions ramp to zero; value: ramp [ms]"
    POWER_OFF = 27, "the drives are off until clear and arm; value: state"
    REVERTED = 28, "a new session: parameters that were not saved are those of flash again"


class Severity(Described):
    """Severity of an EVENT or a LOG."""

    DEBUG = 0, "for developers"
    INFO = 1, "worth a line"
    WARN = 2, "works, but an operator should look"
    ERROR = 3, "something stopped working"
    FATAL = 4, "the board stopped working"


class ResetCause(Described):
    """Why a board started."""

    UNKNOWN = 0, "not known"
    POWER = 1, "power was switched on"
    PIN = 2, "reset button or programmer"
    SOFTWARE = 3, "the program asked for it"
    WATCHDOG = 4, "the program hung or crashed"
    BROWNOUT = 5, "supply voltage too low for the processor"


class EstopReason(Described):
    """Why an ESTOP was sent."""

    UNKNOWN = 0, "not known"
    OPERATOR = 1, "a stop button was pressed"
    HOST = 2, "the host's program found a reason"
    LINE = 3, "the emergency line is open"
    OTHER_BOARD = 4, "another board stopped"


class CalibrateAction(Described):
    """Kinds of CALIBRATE."""

    TENSION_ZERO = 1, "the present load is tension 0; value unused"
    LENGTH = 2, "the present length is value [um]"
    JOINT_ZERO = 3, "the present angle is value [urad]; mask selects joints"


class HeaderFlag(DescribedFlag):
    """Low four bits of the first byte of a frame."""

    ACK_REQUEST = 1 << 0, "the sender wants an ACK also when all is well"
    REPLY = 1 << 1, "answer to a frame of the other side"
    SIMULATED = 1 << 2, "sender is an emulated or host-built board"


ENUMS: tuple[type[Described] | type[DescribedFlag], ...] = (
    State,
    Request,
    AckCode,
    Fault,
    MuscleFlag,
    FastFlag,
    Caps,
    EventCode,
    Severity,
    ResetCause,
    EstopReason,
    CalibrateAction,
    HeaderFlag,
)
"""All of them, in the order of the C header."""


Scope = Literal["board", "muscle", "joint"]


class ParameterId(enum.IntEnum):
    """Parameter of a board.

    Attributes:
        scope: What the index counts.
        default: Value of a board that was never set up, wire units.
        minimum: Minimum value allowed, wire units.
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
        0x13, "board", 100, 20, 5000, 1e-3, "s", "no heartbeat while ARMED: DISARMED",
    )  # fmt: skip
    RELAX_TIME = 0x14, "board", 400, 10, 5000, 1e-3, "s", "length of the ramp to the safe tension"
    COMMAND_AGE = 0x15, "board", 24000, 1000, 1000000, 1e-6, "s", "older commands are refused"
    AGE_LEAK = 0x16, "board", 200, 0, 10000, 1e-6, "", "upward leak of the least transit time, s/s"
    RANGE_STRIKES = 0x17, "board", 3, 1, 100, 1, "", "commands out of range in a row until HOLD"
    # FAULT and ESTOP with the drives on, without the host that armed
    UNATTENDED_HOLD = 0x18, "board", 10000, 0, 1800000, 1e-3, "s", "safe tensions are held"
    UNATTENDED_RAMP = (
        0x19, "board", 5000, 100, 600000, 1e-3, "s", "then they fall to zero",
    )  # fmt: skip
    LOWERING_RATE = 0x1A, "board", 1000, 0, 32000, 1e-4, "m/s", "wires hold at it meanwhile"
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
    CALIBRATION = 0x2C, "board", 0, 0, INT32_MAX, 1, "", "its number, the same on all boards"
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
    # elastic wire between winder and load cell: k = WIRE_STIFFNESS + WIRE_GROWTH T
    WIRE_STIFFNESS = 0x54, "muscle", 0, 0, 100_000_000, 1, "N/m", "of the slack wire; 0: rigid"
    WIRE_GROWTH = 0x55, "muscle", 0, 0, 1_000_000, 0.1, "1/m", "growth of its stiffness"
    WIRE_GAIN = 0x56, "muscle", 0, 0, 1_000_000_000, 1e-3, "A/m", "gain of its elongation"
    ROTOR_DAMPING = 0x57, "muscle", 0, 0, 100_000_000, 1e-3, "A s/m", "gain of its rate"
    # muscle impedance law
    STIFFNESS = 0x58, "muscle", 0, 0, 100_000_000, 0.1, "N/m", "K of the muscle impedance law"
    DAMPING = 0x59, "muscle", 0, 0, 10_000_000, 1e-3, "N s/m", "B of the muscle impedance law"
    TENSION_FLOOR = 0x5A, "muscle", 0, 0, 32767, 0.1, "N", "T_floor of it, at least tension_min"
    # current and temperature of a motor
    CURRENT_CONTINUOUS = 0x60, "muscle", 4000, 1, 32000, 1e-3, "A", "current it stands for ever"
    OVERLOAD_TIME = 0x61, "muscle", 4000, 10, 600000, 1e-3, "s", "time constant of I2t"
    WINDING_RESISTANCE = 0x62, "muscle", 600, 1, 1000000, 1e-3, "Ohm", "resistance at 25 C"
    CORE_RESISTANCE = 0x63, "muscle", 2000, 1, 1000000, 1e-3, "K/W", "winding to housing"
    CORE_CAPACITY = (
        0x64, "muscle", 30000, 1, 100000000, 1e-3, "J/K", "heat capacity of the winding",
    )  # fmt: skip
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
        0x79, "muscle", 1000, 1, 32000, 0.1, "N", "difference of T and k_I I allowed",
    )  # fmt: skip
    RESIDUAL_TIME = 0x7A, "muscle", 200, 1, 60000, 1e-3, "s", "for longer: flag"
    SLACK_TAKEUP = 0x7B, "muscle", 50000, 100, 10000000, 1e-6, "m", "slack taken up while ARMED"
    RESIDUAL_SHARE = (
        0x7C, "muscle", 50, 0, 1000, 0.01, "", "of T, allowed besides RESIDUAL_TENSION",
    )  # fmt: skip
    # joints
    JOINT_SCALE = 0x90, "joint", 1000, -1000000000, 1000000000, 1e-9, "rad", "angle per count"
    JOINT_ZERO = 0x91, "joint", 0, -INT32_MAX, INT32_MAX, 1, "", "counts at angle 0"
