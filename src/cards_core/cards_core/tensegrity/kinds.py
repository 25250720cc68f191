"""What pairs and nodes of a structure are made into: rods, boxes, spheres and cables, in SI.

The parameters are declared here once, with units and ranges: the reader of files, its errors and
the tables of the documentation come from that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from cards_core.errors import ParameterError
from cards_core.parameters.declaration import REQUIRED, parameter
from cards_core.robot.actuators import ImpedanceControl

Color: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue, opacity, each 0 to 1."""

EDGE, NODE = "edge", "node"
"""Where a cable ends: on the surface of the rod, box or sphere, or in the node itself."""


@dataclass(frozen=True, kw_only=True)
class _Rigid:
    density: float | None = parameter(None, "of the material", "kg/m^3", lower=0.0)
    mass: float | None = parameter(None, "of the whole thing, in place of density", "kg", above=0)
    friction: float = parameter(1.0, "sliding coefficient mu of its surface", lower=0.0)
    roll_friction: float = parameter(0.0, "not part of the SDF", lower=0.0)
    restitution: float = parameter(0.0, "not part of the SDF", lower=0.0, upper=1.0)

    def check(self) -> None:
        """Check what concerns several parameters. Raises `ParameterError`."""
        if (self.density is None) == (self.mass is None):
            raise ParameterError("density or mass (expected: one of them)")

    def mass_of(self, volume: float) -> float:
        """Return the mass [kg] of this volume [m^3]."""
        if self.mass is not None:
            return self.mass
        assert self.density is not None
        return self.density * volume


@dataclass(frozen=True, kw_only=True)
class Rod(_Rigid):
    """A solid cylinder from node to node."""

    radius: float = parameter(REQUIRED, "of the cylinder", "m", above=0.0)
    color: Color = (0.24, 0.26, 0.31, 1.0)


@dataclass(frozen=True, kw_only=True)
class Box(_Rigid):
    """A solid box from node to node; its cross-section is turned the least way from upright."""

    width: float = parameter(REQUIRED, "edge along x if the pair points up", "m", above=0.0)
    height: float = parameter(REQUIRED, "edge along y if the pair points up", "m", above=0.0)
    color: Color = (0.55, 0.57, 0.60, 1.0)


@dataclass(frozen=True, kw_only=True)
class Ball(_Rigid):
    """A solid sphere around a node."""

    radius: float = parameter(REQUIRED, "of the sphere", "m", above=0.0)
    color: Color = (0.80, 0.45, 0.12, 1.0)


@dataclass(frozen=True, kw_only=True)
class Winch:
    """What changes the rest length of a cable.

    A winch has a flat limit of speed; a motor (eq. 3.3 of [Mirletz2016]_) has inertia and friction
    of its own: I a = tau - b w + r T with abs(tau) <= max(0, r T_max (1 - r abs(w)/v_max)). In the
    SDF a motor is a winch of the same largest speed, unless ``rotor`` is set.
    """

    type: str = parameter("winch", "winch or motor", choices=("winch", "motor"))
    tension_max: float = parameter(REQUIRED, "largest tension", "N", above=0.0)
    speed_max: float = parameter(REQUIRED, "fastest change of the rest length", "m/s", above=0.0)
    radius: float | None = parameter(None, "r of a motor's spool", "m", above=0.0)
    friction: float | None = parameter(None, "b of a motor", "N m s", lower=0.0)
    inertia: float | None = parameter(None, "I of a motor's rotor", "kg m^2", above=0.0)
    backdrivable: bool = parameter(False, "a motor's, by the cable")
    rotor: bool = parameter(
        False, "whether the SDF has a motor's rotor; a winch of speed_max without it"
    )
    position_gain: float | None = parameter(
        None, "kp of a motor with rotor; m (100 rad/s)^2 without it, m = I/r^2", "N/m", above=0.0
    )
    velocity_gain: float | None = parameter(
        None, "kd of a motor with rotor; 2 sqrt(kp m) without it", "N s/m", lower=0.0
    )

    def check(self) -> None:
        """Check what concerns several parameters. Raises `ParameterError`."""
        given = [
            name for name in ("radius", "friction", "inertia") if getattr(self, name) is not None
        ]
        if self.type == "winch" and self.rotor:
            given.append("rotor")
        if self.type == "winch" and given:
            raise ParameterError(f"'{given[0]}' belongs to a motor (expected: type: motor)")
        gains = [
            name for name in ("position_gain", "velocity_gain") if getattr(self, name) is not None
        ]
        if gains and not self.rotor:
            raise ParameterError(f"'{gains[0]}' without a rotor (expected: rotor: true)")
        if self.type == "motor" and len(given) < 3:
            raise ParameterError("a motor (expected: radius, friction and inertia)")


@dataclass(frozen=True, kw_only=True)
class Cord:
    """A cable that only pulls, from node to node.

    T = E + min(max(b l', -E), E),   E = max(0, k (l - L0))
    """

    stiffness: float = parameter(REQUIRED, "k", "N/m", above=0.0)
    damping: float = parameter(0.0, "b, acts while the cable is taut", "N s/m", lower=0.0)
    pretension: float | None = parameter(
        None, "tension as built, L0 = l - pretension/k; 0 without it and rest_length", "N", lower=0
    )
    rest_length: float | None = parameter(None, "L0, in place of pretension", "m", above=0.0)
    contact: bool = parameter(False, "touches rods, boxes and terrain")
    friction: float = parameter(
        0.0, "capstan coefficient mu against what it touches", lower=0.0, upper=2.0
    )
    rotation: float = parameter(0.0, "of the ends about their rods", "deg")
    min_length: float = parameter(0.0, "a winch does not shorten below this length", "m", lower=0)
    min_rest_length: float = parameter(0.0, "minimum L0 that a winch makes", "m", lower=0.0)
    tension_max: float | None = parameter(
        None, "of a cable without actuator; k times L0 without it", "N", above=0.0
    )
    anchors: tuple[str, str] = (EDGE, EDGE)
    actuator: Winch | None = None
    control: ImpedanceControl = field(default_factory=ImpedanceControl)

    def check(self) -> None:
        """Check what concerns several parameters. Raises `ParameterError`."""
        if self.pretension is not None and self.rest_length is not None:
            raise ParameterError("pretension and rest_length (expected: one of them)")
        if self.actuator is not None and self.tension_max is not None:
            raise ParameterError("tension_max (expected: in 'actuator', which the cable has)")
        if self.friction and not self.contact:
            raise ParameterError(
                "friction of a cable that touches nothing (expected: contact: true)"
            )
        if self.control.rate == "winch" and not (self.actuator and self.actuator.rotor):
            raise ParameterError(
                "control: rate 'winch' without a rotor (expected: an actuator with type: motor "
                "and rotor: true)"
            )


Kind: TypeAlias = Rod | Box | Ball | Cord
