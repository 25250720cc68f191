"""Wire types and units of the protocol.

A quantity is an integer times a scale. The value that is farthest from zero means "invalid":
the least one of a signed type, the largest one of an unsigned type. In Python that is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WireType = Literal["u8", "u16", "u32", "i16", "i32"]

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Wire:
    """An integer type on the wire, little endian.

    Attributes:
        size: [bytes]
        code: Letter of Python's `struct`.
        minimum: Least value that it holds.
        maximum: Largest value that it holds.
        invalid: Value that means "no valid value" where the field is a quantity.
        c_type: Type in C.
    """

    size: int
    code: str
    minimum: int
    maximum: int
    invalid: int
    c_type: str


WIRE: dict[str, Wire] = {
    "u8": Wire(1, "B", 0, 2**8 - 1, 2**8 - 1, "uint8_t"),
    "u16": Wire(2, "H", 0, 2**16 - 1, 2**16 - 1, "uint16_t"),
    "u32": Wire(4, "I", 0, 2**32 - 1, 2**32 - 1, "uint32_t"),
    "i16": Wire(2, "h", -(2**15), 2**15 - 1, -(2**15), "int16_t"),
    "i32": Wire(4, "i", -(2**31), 2**31 - 1, -(2**31), "int32_t"),
}
"""All wire types by name."""


@dataclass(frozen=True)
class Quantity:
    """A physical quantity on the wire.

    Attributes:
        wire: Its wire type.
        scale: SI value of one count, [unit].
        unit: SI unit.
    """

    wire: WireType
    scale: float
    unit: str


QUANTITIES: dict[str, Quantity] = {
    "length": Quantity("i32", 1e-6, "m"),
    "rate": Quantity("i16", 1e-4, "m/s"),
    "tension": Quantity("i16", 0.1, "N"),
    "slew": Quantity("u16", 1.0, "N/s"),
    "stiffness": Quantity("u16", 100.0, "N/m"),
    "current": Quantity("i16", 1e-3, "A"),
    "angle": Quantity("i32", 1e-6, "rad"),
    "joint_rate": Quantity("i16", 1e-3, "rad/s"),
    "temperature": Quantity("i16", 0.01, "C"),
    "pressure": Quantity("u32", 1.0, "Pa"),
    "voltage": Quantity("u16", 1e-3, "V"),
    "count32": Quantity("i32", 1.0, "count"),
    "count16": Quantity("i16", 1.0, "count"),
}
"""All quantities by name; C has ``MLP_SCALE_<NAME>`` for each."""
