"""Parameters of the actuator models, with units and defaults.

The single source for the reader of model files, its errors, the writer and the tables of the
documentation. The equations are in `cards_core.muscles.actuators`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

CommandKind: TypeAlias = Literal["force", "length", "pressure", "excitation", "effort"]
"""What a muscle can be told: tension [N], rest length [m], pressure [Pa], excitation 0..1; and
what the motor of a joint can be told: effort, [Nm] or [N]."""


def parameter(
    unit: str,
    meaning: str,
    default: Any = dataclasses.MISSING,
    *,
    above: float = -math.inf,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is an XML attribute.

    Args:
        unit: As in the documentation, e.g. ``N/m``; empty for numbers without unit and names.
        meaning: Half a sentence.
        default: None makes the parameter optional without a value; missing makes it mandatory.
        above: Exclusive lower end of the accepted range.
        minimum: Inclusive lower end.
        maximum: Inclusive upper end.
        choices: Accepted names, for text.
    """
    return field(
        default=default,
        metadata={
            "unit": unit,
            "meaning": meaning,
            "above": above,
            "minimum": minimum,
            "maximum": maximum,
            "choices": choices,
        },
    )


class _Parameters:
    """Base of all groups of parameters."""

    def check(self) -> None:
        """Check what concerns several parameters at once, and nested groups.

        Raises:
            ValueError: The message names the attribute.
        """


class _Actuator(_Parameters):
    kind: ClassVar[str]
    commands: ClassVar[tuple[CommandKind, ...]]

    @property
    def accepted_commands(self) -> tuple[CommandKind, ...]:
        """The commands that an actuator with these parameters accepts."""
        return self.commands


# Cable ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cable(_Actuator):
    """A cable: ideal (follows the commanded tension), or elastic when it has a stiffness.

    An elastic cable that gets no command is a passive spring that only pulls.
    """

    kind: ClassVar[str] = "cable"
    commands: ClassVar[tuple[CommandKind, ...]] = ("force", "length")

    stiffness: float | None = parameter(
        "N/m", "k of the elastic cable; ideal without it", None, above=0.0
    )
    damping: float = parameter("N s/m", "c, acts while the cable is taut", 0.0, minimum=0.0)
    rest_length: float | None = parameter(
        "m",
        "L0 before the first command; without it, what gives the minimum tension at home",
        None,
        above=0.0,
    )
    winch_speed: float | None = parameter(
        "m/s", "fastest change of the rest length; unlimited without it", None, above=0.0
    )

    @property
    def accepted_commands(self) -> tuple[CommandKind, ...]:
        """An ideal cable has no rest length that could be commanded."""
        return ("force",) if self.stiffness is None else self.commands

    def check(self) -> None:
        """See the base class."""
        if self.stiffness is not None:
            return
        for name in ("rest_length", "winch_speed"):
            if getattr(self, name) is not None:
                raise ValueError(f"'{name}' needs a 'stiffness': an ideal cable has none of both")
        if self.damping > 0.0:
            raise ValueError("'damping' needs a 'stiffness': an ideal cable has none of both")


# Series elastic unit -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Motor(_Parameters):
    """A DC or brushless motor with gear; the defaults are those of the MyoMuscle unit."""

    resistance: float = parameter("ohm", "R of the winding at 25 degC", 0.797, above=0.0)
    torque_constant: float = parameter(
        "N m/A", "kt; the back-EMF constant in V s is the same number", 0.0142, above=0.0
    )
    voltage: float = parameter("V", "U, supply", 24.0, above=0.0)
    max_current: float = parameter("A", "I_max that the driver allows", 5.0, above=0.0)
    rotor_inertia: float = parameter(
        "kg m^2", "J of rotor and gear, seen at the rotor", 4.49e-7, above=0.0
    )
    gear_ratio: float = parameter("", "N, rotor turns per spool turn", 53.0, above=0.0)
    gear_efficiency: float = parameter(
        "", "eta: share of the power that the gear passes on", 0.59, above=0.0, maximum=1.0
    )
    dry_friction: float = parameter("N m", "Coulomb friction at the rotor", 0.0, minimum=0.0)
    viscous_friction: float = parameter("N m s", "torque per speed at the rotor", 0.0, minimum=0.0)
    friction_speed: float = parameter(
        "rad/s",
        "rotor speed at which dry friction and gear loss have three quarters of their value",
        50.0,
        above=0.0,
    )


@dataclass(frozen=True, kw_only=True)
class Spring(_Parameters):
    """The elastic element: tension T over its elongation d.

    ``polynomial``: T = k d + k2 d^2 + k3 d^3 (linear when only k is given); ``exponential``:
    T = A (exp(B d) - 1); ``triangle``: a coil spring k pressed by the cable over two rollers, as
    in the MyoMuscle unit. Beyond ``travel`` the curve goes on with its last slope.
    """

    law: str = parameter(
        "", "form of the curve", choices=("polynomial", "exponential", "triangle")
    )
    stiffness: float | None = parameter(
        "N/m", "k of polynomial, coil spring of triangle", None, above=0.0
    )
    quadratic: float | None = parameter("N/m^2", "k2 of polynomial; 0 without it", None)
    cubic: float | None = parameter("N/m^3", "k3 of polynomial; 0 without it", None, minimum=0.0)
    force_scale: float | None = parameter("N", "A of exponential", None, above=0.0)
    growth: float | None = parameter("1/m", "B of exponential", None, above=0.0)
    c1: float | None = parameter(
        "m", "triangle: distance of the first roller from the cable's line; 0.012", None, above=0.0
    )
    c2: float | None = parameter(
        "m", "triangle: distance of the second roller; 0.008", None, above=0.0
    )
    c3: float | None = parameter(
        "m", "triangle: distance between the rollers along the line; 0.018", None, minimum=0.0
    )
    c4: float | None = parameter(
        "m", "triangle: distance of the unloaded spring's end; 0.039", None, above=0.0
    )
    travel: float | None = parameter(
        "m",
        "elongation (triangle: compression of the coil spring) at the end of the curve; "
        "triangle 0.02, exponential 10/B, polynomial endless",
        None,
        above=0.0,
    )

    def check(self) -> None:
        """See the base class."""
        own = {
            "polynomial": ("stiffness", "quadratic", "cubic"),
            "exponential": ("force_scale", "growth"),
            "triangle": ("stiffness", "c1", "c2", "c3", "c4"),
        }
        needed = {
            "polynomial": ("stiffness",),
            "exponential": ("force_scale", "growth"),
            "triangle": ("stiffness",),
        }
        for name in needed[self.law]:
            if getattr(self, name) is None:
                raise ValueError(f"law '{self.law}' needs '{name}'")
        for item in dataclasses.fields(self):
            name = item.name
            given = getattr(self, name) is not None
            if given and name not in ("law", "travel", *own[self.law]):
                raise ValueError(
                    f"'{name}' does not belong to law '{self.law}', which has: "
                    f"{', '.join((*own[self.law], 'travel'))}"
                )
        if self.law == "polynomial":
            k, k2, k3 = self.stiffness or 0.0, self.quadratic or 0.0, self.cubic or 0.0
            end = math.inf if self.travel is None else self.travel
            lowest = min(-k2 / (3.0 * k3) if k3 > 0.0 else math.inf, end)
            if k2 < 0.0 and (math.isinf(lowest) or k + lowest * (2 * k2 + 3 * k3 * lowest) <= 0.0):
                raise ValueError(
                    f"'quadratic' {k2:g} makes the tension fall with the elongation: "
                    "T' = k + 2 k2 d + 3 k3 d^2 must be above 0 up to 'travel'"
                )
        if self.law == "triangle":
            c4 = 0.039 if self.c4 is None else self.c4
            travel = 0.02 if self.travel is None else self.travel
            if not travel < c4:
                raise ValueError(f"'travel' {travel:g} m must be shorter than 'c4' {c4:g} m")


@dataclass(frozen=True, kw_only=True)
class Thermal(_Parameters):
    """Two-node thermal model of a motor; the defaults are typical of a 90 W brushless motor."""

    winding_heat_capacity: float = parameter("J/K", "C1", 10.0, above=0.0)
    housing_heat_capacity: float = parameter("J/K", "C2", 69.0, above=0.0)
    winding_resistance: float = parameter("K/W", "R1, winding to housing", 0.2, above=0.0)
    housing_resistance: float = parameter("K/W", "R2, housing to ambient", 10.0, above=0.0)
    ambient: float = parameter("degC", "Ta, also the temperature at the start", 25.0)
    copper_coefficient: float = parameter(
        "1/K", "growth of the electrical resistance, relative to 25 degC", 0.0039, minimum=0.0
    )


@dataclass(frozen=True, kw_only=True)
class SeriesElastic(_Actuator):
    """Motor with gear, spool and a spring in series with the cable."""

    kind: ClassVar[str] = "series_elastic"
    commands: ClassVar[tuple[CommandKind, ...]] = ("length", "force")

    spool_radius: float = parameter("m", "r", 0.0045, above=0.0)
    position_gain: float | None = parameter(
        "N/m",
        "kp of the motor's position loop, as force at the cable; m (100 rad/s)^2 without it, with "
        "m = J N^2/r^2",
        None,
        above=0.0,
    )
    velocity_gain: float | None = parameter(
        "N s/m", "kd of the loop; critical damping 2 sqrt(kp m) without it", None, minimum=0.0
    )
    motor: Motor = field(default_factory=Motor)
    spring: Spring
    thermal: Thermal | None = None

    def check(self) -> None:
        """See the base class."""
        self.motor.check()
        self.spring.check()
        if self.thermal is not None:
            self.thermal.check()


# Pneumatic muscle ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Valve(_Parameters):
    """Proportional valve (ISO 6358) that fills and vents the volume of a pneumatic muscle."""

    conductance: float = parameter(
        "m^3/(s Pa)", "C, sonic conductance of the open valve", 1e-8, above=0.0
    )
    critical_ratio: float = parameter(
        "", "b, pressure ratio below which the flow is sonic", 0.3, minimum=0.0, maximum=0.99
    )
    supply_pressure: float = parameter("Pa", "above atmosphere", 7e5, above=0.0)
    band: float = parameter("Pa", "pressure error that opens the valve fully", 2e4, above=0.0)
    polytropic_exponent: float = parameter(
        "", "1 isothermal .. 1.4 adiabatic", 1.0, minimum=1.0, maximum=1.4
    )
    atmosphere: float = parameter("Pa", "absolute pressure outside", 101325.0, above=0.0)


@dataclass(frozen=True, kw_only=True)
class Pneumatic(_Actuator):
    """McKibben muscle (braided pneumatic artificial muscle)."""

    kind: ClassVar[str] = "pneumatic"
    commands: ClassVar[tuple[CommandKind, ...]] = ("pressure", "force")

    thread_length: float = parameter("m", "b, length of one thread of the braid", above=0.0)
    turns: float = parameter("", "n, turns of a thread around the muscle", above=0.0)
    rest_length: float = parameter("m", "L0, length of the braid without pressure", above=0.0)
    tendon_length: float = parameter(
        "m", "inextensible rest of the path in series with the braid", 0.0, minimum=0.0
    )
    end_correction: float = parameter(
        "", "k of Tondu and Lopez for the ends that stay cylindrical; 1.25..1.35", 1.0, minimum=1.0
    )
    threshold_pressure: float = parameter(
        "Pa", "pressure that the bladder itself takes", 0.0, minimum=0.0
    )
    bladder_stiffness: float = parameter(
        "N/m", "kb; pushes while shorter than the rest length, pulls beyond", 0.0, minimum=0.0
    )
    friction: float = parameter(
        "", "dry friction of the threads as a share of the tension", 0.03, minimum=0.0, maximum=0.5
    )
    friction_speed: float = parameter(
        "m/s", "speed at which friction has three quarters of its value", 0.01, above=0.0
    )
    max_pressure: float = parameter("Pa", "largest pressure, above atmosphere", 6e5, above=0.0)
    pressure_time: float = parameter(
        "s", "time constant of the pressure where no valve is given", 0.05, above=0.0
    )
    valve: Valve | None = None

    def check(self) -> None:
        """See the base class."""
        low, high = self.thread_length / math.sqrt(3.0), self.thread_length
        if not low < self.rest_length < high:
            raise ValueError(
                f"'rest_length' {self.rest_length:g} m must lie between thread_length/sqrt(3) = "
                f"{low:g} m (fully contracted) and 'thread_length' {high:g} m"
            )
        if not self.threshold_pressure < self.max_pressure:
            raise ValueError(
                f"'threshold_pressure' {self.threshold_pressure:g} Pa must be below "
                f"'max_pressure' {self.max_pressure:g} Pa"
            )
        if self.valve is not None:
            self.valve.check()
            if not self.valve.supply_pressure > self.max_pressure:
                raise ValueError(
                    f"'supply_pressure' {self.valve.supply_pressure:g} Pa of the valve must be "
                    f"above 'max_pressure' {self.max_pressure:g} Pa"
                )


# Muscle and ligament -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Hill(_Actuator):
    """Hill-type muscle: activation, contractile and parallel element, tendon."""

    kind: ClassVar[str] = "hill"
    commands: ClassVar[tuple[CommandKind, ...]] = ("excitation", "force")

    max_isometric_force: float = parameter("N", "F0", above=0.0)
    optimal_fiber_length: float = parameter("m", "l_opt", above=0.0)
    tendon_slack_length: float = parameter("m", "l_slack", above=0.0)
    pennation_angle: float = parameter(
        "rad", "angle of the fibres at optimal length", 0.0, minimum=0.0, maximum=1.4
    )
    max_velocity: float = parameter(
        "1/s", "v_max, fastest shortening in optimal fibre lengths per second", 10.0, above=0.0
    )
    curves: str = parameter(
        "",
        "set of curves and activation dynamics",
        "de_groote_2016",
        choices=("de_groote_2016", "thelen_2003"),
    )
    tendon: str = parameter(
        "",
        "auto: rigid when l_slack/l_opt < 1, else elastic",
        "auto",
        choices=("auto", "elastic", "rigid"),
    )
    tendon_strain: float | None = parameter(
        "", "strain of the tendon at F0; De Groote 0.049, Thelen 0.04", None, above=0.0
    )
    damping: float = parameter(
        "", "beta, viscous force at v_max as a share of F0", 0.01, above=0.0
    )
    activation_time: float | None = parameter("s", "tau_a; 0.015 in both sets", None, above=0.0)
    deactivation_time: float | None = parameter(
        "s", "tau_d; De Groote 0.060, Thelen 0.050", None, above=0.0
    )
    min_activation: float = parameter(
        "", "lowest activation, of a relaxed muscle", 0.01, minimum=0.0, maximum=0.5
    )

    @property
    def rigid_tendon(self) -> bool:
        """Whether the tendon is taken as inextensible."""
        if self.tendon == "auto":
            return self.tendon_slack_length < self.optimal_fiber_length
        return self.tendon == "rigid"


@dataclass(frozen=True, kw_only=True)
class Ligament(_Actuator):
    """Passive ligament after Blankevoort and Huiskes (1991)."""

    kind: ClassVar[str] = "ligament"
    commands: ClassVar[tuple[CommandKind, ...]] = ()

    stiffness: float = parameter("N", "k, tension per strain in the linear region", above=0.0)
    slack_length: float = parameter("m", "l0", above=0.0)
    toe_strain: float = parameter(
        "", "strain at which the linear region begins", 0.06, above=0.0, maximum=1.0
    )
    damping: float = parameter(
        "N s", "c, tension per strain rate, while taut and lengthening", 0.003, minimum=0.0
    )


Actuator: TypeAlias = Cable | SeriesElastic | Pneumatic | Hill | Ligament
ACTUATORS: Mapping[str, type[Actuator]] = {
    "cable": Cable,
    "series_elastic": SeriesElastic,
    "pneumatic": Pneumatic,
    "hill": Hill,
    "ligament": Ligament,
}
"""Values of ``<muscle type="...">``."""


def check_parameters(group: Any, where: str = "") -> None:
    """Check every parameter of an actuator against its range, then what `check` knows.

    Args:
        group: An actuator, or a nested group of one.
        where: Name of the nested group, for messages.

    Raises:
        ValueError: The message names the attribute, its value and what is accepted.
    """
    prefix = f"{where}: " if where else ""
    for item in dataclasses.fields(group):
        value = getattr(group, item.name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value):
            check_parameters(value, item.name)
            continue
        limits = item.metadata
        if limits["choices"] or isinstance(value, str):
            if value not in limits["choices"]:
                raise ValueError(
                    f"{prefix}'{item.name}' is '{value}', expected one of: "
                    f"{', '.join(limits['choices'])}"
                )
        elif not math.isfinite(value):
            raise ValueError(f"{prefix}'{item.name}' is {value:g}, expected a finite number")
        elif not value > limits["above"]:
            raise ValueError(
                f"{prefix}'{item.name}' is {value:g}, expected above {limits['above']:g}"
            )
        elif not limits["minimum"] <= value <= limits["maximum"]:
            low, high = limits["minimum"], limits["maximum"]
            raise ValueError(f"{prefix}'{item.name}' is {value:g}, expected {low:g} .. {high:g}")
    try:
        group.check()
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from None
