"""Parameters of the actuator models, with units, ranges and defaults.

The single source for the reader of model files, its errors, the writer and the tables of the
documentation (`cards_core.parameters.declaration`). The equations are in
`cards_core.muscles.actuators`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from cards_core.errors import ParameterError
from cards_core.parameters.declaration import REQUIRED, groups_of, parameter, parameters_of

CommandKind: TypeAlias = Literal[
    "force", "length", "pressure", "excitation", "effort", "impedance"
]
"""What a muscle can be told: tension [N], rest length [m], pressure [Pa], excitation 0..1, or the
set-points of its impedance law (`cards_core.muscles.impedance`); and what the motor of a joint can
be told: effort, [Nm] or [N]."""


class _Parameters:
    """Base of all groups of parameters."""

    def check(self) -> None:
        """Check every parameter, every group in this one, then what concerns several of them.

        Raises:
            ParameterError: The message names group and parameter, its value and what is accepted.
        """
        for spec in parameters_of(type(self)):
            value = getattr(self, spec.name)
            if value is not None or spec.default is not None:
                spec.check(value)
        for group in groups_of(type(self)):
            inner = getattr(self, group.name)
            if inner is not None:
                try:
                    inner.check()
                except ParameterError as error:
                    raise ParameterError(f"{group.name}: {error}") from None
        self._check_together()

    def _check_together(self) -> None:
        """Check what concerns several parameters at once; raises `ParameterError`."""


class _Actuator(_Parameters):
    kind: ClassVar[str]
    commands: ClassVar[tuple[CommandKind, ...]]

    @property
    def accepted_commands(self) -> tuple[CommandKind, ...]:
        """The commands that an actuator with these parameters accepts."""
        return _with_impedance(self.commands)

    @property
    def passive_range(self) -> tuple[float, float] | None:
        """Lengths of the path [m] over which a muscle pulls without a command.

        None if it only does what it is told.
        """
        return None

    def check(self) -> None:
        """See `_Parameters`; and where the heat of a ``thermal`` group comes from."""
        super().check()
        thermal: Thermal | None = getattr(self, "thermal", None)
        if thermal is not None:
            thermal.check_source(motor=getattr(self, "motor", None) is not None)


def _with_impedance(commands: tuple[CommandKind, ...]) -> tuple[CommandKind, ...]:
    """Return the kinds of commands, with the law that makes a tension where one is accepted."""
    return (*commands, "impedance") if "force" in commands else commands


# Impedance law -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImpedanceControl(_Parameters):
    """The muscle's impedance law; see `cards_core.muscles.impedance`."""

    # as on boards, which take no more
    stiffness: float = parameter(0.0, "K", "N/m", lower=0.0, upper=1e7)
    damping: float = parameter(0.0, "B", "N s/m", lower=0.0, upper=1e4)
    tension_floor: float | None = parameter(
        None, "T_floor; the minimum tension of the muscle without it", "N", lower=0.0, upper=1e6
    )
    tension_rate: float | None = parameter(
        None, "fastest change of the tension; unlimited without it", "N/s", above=0.0
    )
    rate: str = parameter(
        "encoder",
        "l': what the encoder reads, or of the rest length that a winch with a motor makes",
        choices=("encoder", "winch"),
    )


def check_control(actuator: Actuator, control: ImpedanceControl) -> None:
    """Check that a law fits the actuator that is under it.

    Raises:
        ParameterError: It needs the rate of a winch, and there is none.
    """
    wound = isinstance(actuator, Cable) and actuator.stiffness is not None
    if control.rate == "winch" and not (wound and getattr(actuator, "motor", None) is not None):
        raise ParameterError(
            "rate 'winch' needs a cable with 'stiffness' and a 'motor', whose rest length has a "
            "rate; expected 'encoder'"
        )


# Motors --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Motor(_Parameters):
    """A DC or brushless motor with gear; the defaults are those of the MyoMuscle unit."""

    resistance: float = parameter(0.797, "R of the winding at 25 degC", "ohm", above=0.0)
    torque_constant: float = parameter(
        0.0142, "kt; the back-EMF constant in V s is the same number", "N m/A", above=0.0
    )
    voltage: float = parameter(24.0, "U, supply", "V", above=0.0)
    max_current: float = parameter(5.0, "I_max that the driver allows", "A", above=0.0)
    rotor_inertia: float = parameter(
        4.49e-7, "J of rotor and gear, seen at the rotor", "kg m^2", above=0.0
    )
    gear_ratio: float = parameter(53.0, "N, rotor turns per spool turn", above=0.0)
    gear_efficiency: float = parameter(
        0.59, "eta: share of the power that the gear passes on", above=0.0, upper=1.0
    )
    dry_friction: float = parameter(0.0, "Coulomb friction at the rotor", "N m", lower=0.0)
    viscous_friction: float = parameter(0.0, "torque per speed at the rotor", "N m s", lower=0.0)
    friction_speed: float = parameter(
        50.0,
        "rotor speed at which dry friction and gear loss have three quarters of their value",
        "rad/s",
        above=0.0,
    )
    backdrivable: bool = parameter(
        True, "of an elastic cable: whether the cable turns it; else it pays out only when driven"
    )
    envelope: str = parameter(
        "generator",
        "of an elastic cable: what voltage leaves for the current at a speed. generator: "
        "(+-U - kt w)/R; symmetric: +-(U - kt |w|)/R, it brakes no harder than it drives",
        choices=("generator", "symmetric"),
    )

    def check_free(self) -> None:
        """Check that nothing is given that belongs to elastic cables.

        Raises:
            ParameterError: `backdrivable` or `envelope` is.
        """
        for name in ("backdrivable", "envelope"):
            if getattr(self, name) != getattr(type(self), name):
                raise ParameterError(
                    f"motor: '{name}' belongs to the motor of a cable with 'stiffness'"
                )


@dataclass(frozen=True, kw_only=True)
class Thermal(_Parameters):
    """Two-node thermal model of a motor; the defaults are typical of a 90 W brushless motor.

    The heat is that of the current where there is a ``motor``, else k T^2 of the tension.
    """

    winding_heat_capacity: float = parameter(10.0, "C1", "J/K", lower=1e-6)
    housing_heat_capacity: float = parameter(69.0, "C2", "J/K", lower=1e-6)
    winding_resistance: float = parameter(0.2, "R1, winding to housing", "K/W", lower=1e-6)
    housing_resistance: float = parameter(10.0, "R2, housing to ambient", "K/W", lower=1e-6)
    ambient: float = parameter(
        25.0, "Ta, also the temperature at the start", "degC", lower=-273.15
    )
    copper_coefficient: float = parameter(
        0.0039,
        "with a motor: growth of the electrical resistance, relative to 25 degC",
        "1/K",
        lower=0.0,
    )
    heat_per_square_force: float | None = parameter(
        None, "k, without a motor: heat k T^2 of a tension T; required there", "W/N^2", lower=0.0
    )

    def check_source(self, *, motor: bool) -> None:
        """Check that the heat has one source.

        Args:
            motor: Whether the muscle has a motor.

        Raises:
            ParameterError: Both motor and `heat_per_square_force`, or none of both.
        """
        if motor and self.heat_per_square_force is not None:
            raise ParameterError(
                "thermal: 'heat_per_square_force' belongs to muscles without a 'motor'; the "
                "current of a motor tells the heat"
            )
        if not motor and self.heat_per_square_force is None:
            raise ParameterError(
                "thermal: without a 'motor', whose current heats, it needs "
                "'heat_per_square_force': k of the heat k T^2, in W/N^2"
            )
        # the default stands for not given: it is a number because a motor always has one
        if not motor and self.copper_coefficient != type(self).copper_coefficient:
            raise ParameterError(
                "thermal: 'copper_coefficient' is that of a motor's winding; there is no 'motor'"
            )


# Cable ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cable(_Actuator):
    """A cable: ideal (follows the commanded tension), or elastic when it has a stiffness.

    An elastic cable that gets no command is a passive spring that only pulls. An ideal cable with
    a ``motor`` has a current and follows the tension as far as its motor can; the motor of an
    elastic cable winds it up.
    """

    kind: ClassVar[str] = "cable"
    commands: ClassVar[tuple[CommandKind, ...]] = ("force", "length")

    stiffness: float | None = parameter(
        None, "k of the elastic cable; ideal without it", "N/m", above=0.0
    )
    damping: float = parameter(0.0, "c, acts while the cable is taut", "N s/m", lower=0.0)
    rest_length: float | None = parameter(
        None,
        "L0 before the first command; without it, what gives the minimum tension at home",
        "m",
        above=0.0,
    )
    winch_speed: float | None = parameter(
        None, "fastest change of the rest length; unlimited without it", "m/s", above=0.0
    )
    spool_radius: float | None = parameter(
        None, "r, of the motor's spool; 0.0045 without it", "m", above=0.0
    )
    position_gain: float | None = parameter(
        None,
        "kp of the motor of an elastic cable, as force at the cable; m (100 rad/s)^2 without it, "
        "with m = J N^2/r^2",
        "N/m",
        above=0.0,
    )
    velocity_gain: float | None = parameter(
        None, "kd of that motor; critical damping 2 sqrt(kp m) without it", "N s/m", lower=0.0
    )
    motor: Motor | None = None
    thermal: Thermal | None = None

    @property
    def accepted_commands(self) -> tuple[CommandKind, ...]:
        """An ideal cable has no rest length that could be commanded."""
        return _with_impedance(("force",) if self.stiffness is None else self.commands)

    def _check_together(self) -> None:
        if self.spool_radius is not None and self.motor is None:
            raise ParameterError("'spool_radius' needs a 'motor', to which it belongs")
        if self.stiffness is not None:
            if self.motor is not None and self.winch_speed is not None:
                raise ParameterError(
                    "'winch_speed' and a 'motor', whose voltage limits its speed; expected one "
                    "of both"
                )
            for name in ("position_gain", "velocity_gain"):
                if self.motor is None and getattr(self, name) is not None:
                    raise ParameterError(f"'{name}' needs a 'motor', to which it belongs")
            return
        if self.motor is not None:
            self.motor.check_free()
        for name in ("rest_length", "winch_speed", "position_gain", "velocity_gain"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"'{name}' needs a 'stiffness': an ideal cable has none of both"
                )
        if self.damping > 0.0:
            raise ParameterError("'damping' needs a 'stiffness': an ideal cable has none of both")


# Series elastic unit -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Spring(_Parameters):
    """The elastic element: tension T over its elongation d.

    ``polynomial``: T = k d + k2 d^2 + k3 d^3 (linear when only k is given); ``exponential``:
    T = A (exp(B d) - 1); ``triangle``: a coil spring k pressed by the cable over two rollers, as
    in the MyoMuscle unit. Beyond ``travel`` the curve goes on with its last slope.
    """

    law: str = parameter(
        REQUIRED, "form of the curve", choices=("polynomial", "exponential", "triangle")
    )
    stiffness: float | None = parameter(
        None, "k of polynomial, coil spring of triangle", "N/m", above=0.0
    )
    quadratic: float | None = parameter(None, "k2 of polynomial; 0 without it", "N/m^2")
    cubic: float | None = parameter(None, "k3 of polynomial; 0 without it", "N/m^3", lower=0.0)
    force_scale: float | None = parameter(None, "A of exponential", "N", above=0.0)
    growth: float | None = parameter(None, "B of exponential", "1/m", above=0.0)
    c1: float | None = parameter(
        None, "triangle: distance of the first roller from the cable's line; 0.012", "m", above=0.0
    )
    c2: float | None = parameter(
        None, "triangle: distance of the second roller; 0.008", "m", above=0.0
    )
    c3: float | None = parameter(
        None, "triangle: distance between the rollers along the line; 0.018", "m", lower=0.0
    )
    c4: float | None = parameter(
        None, "triangle: distance of the unloaded spring's end; 0.039", "m", above=0.0
    )
    travel: float | None = parameter(
        None,
        "elongation (triangle: compression of the coil spring) at the end of the curve; "
        "triangle 0.02, exponential 10/B, polynomial endless",
        "m",
        above=0.0,
    )

    def _check_together(self) -> None:
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
                raise ParameterError(f"law '{self.law}' needs '{name}'")
        for item in dataclasses.fields(self):
            name = item.name
            given = getattr(self, name) is not None
            if given and name not in ("law", "travel", *own[self.law]):
                raise ParameterError(
                    f"'{name}' does not belong to law '{self.law}', which has: "
                    f"{', '.join((*own[self.law], 'travel'))}"
                )
        if self.law == "polynomial":
            k, k2, k3 = self.stiffness or 0.0, self.quadratic or 0.0, self.cubic or 0.0
            end = math.inf if self.travel is None else self.travel
            lowest = min(-k2 / (3.0 * k3) if k3 > 0.0 else math.inf, end)
            if k2 < 0.0 and (math.isinf(lowest) or k + lowest * (2 * k2 + 3 * k3 * lowest) <= 0.0):
                raise ParameterError(
                    f"'quadratic' {k2:g} makes the tension fall with the elongation: "
                    "T' = k + 2 k2 d + 3 k3 d^2 must be above 0 up to 'travel'"
                )
        if self.law == "triangle":
            c4 = 0.039 if self.c4 is None else self.c4
            travel = 0.02 if self.travel is None else self.travel
            if not travel < c4:
                raise ParameterError(f"'travel' {travel:g} m must be shorter than 'c4' {c4:g} m")


@dataclass(frozen=True, kw_only=True)
class SeriesElastic(_Actuator):
    """Motor with gear, spool and a spring in series with the cable."""

    kind: ClassVar[str] = "series_elastic"
    commands: ClassVar[tuple[CommandKind, ...]] = ("length", "force")

    spool_radius: float = parameter(0.0045, "r", "m", above=0.0)
    driver: str = parameter(
        "position",
        "position: the driver has a loop of its own; current: a force command f sets the current, "
        "kt n i = f, and whoever sends it closes the loop",
        choices=("position", "current"),
    )
    position_gain: float | None = parameter(
        None,
        "kp of the motor's position loop, as force at the cable; m (100 rad/s)^2 without it, with "
        "m = J N^2/r^2",
        "N/m",
        above=0.0,
    )
    velocity_gain: float | None = parameter(
        None, "kd of the loop; critical damping 2 sqrt(kp m) without it", "N s/m", lower=0.0
    )
    motor: Motor = field(default_factory=Motor)
    spring: Spring
    thermal: Thermal | None = None

    @property
    def accepted_commands(self) -> tuple[CommandKind, ...]:
        """A driver of currents knows no position."""
        return _with_impedance(("force",) if self.driver == "current" else self.commands)

    def _check_together(self) -> None:
        self.motor.check_free()
        for name in ("position_gain", "velocity_gain"):
            if self.driver == "current" and getattr(self, name) is not None:
                raise ParameterError(f"'{name}' belongs to driver 'position'")


# Pneumatic muscle ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Valve(_Parameters):
    """Proportional valve (ISO 6358) that fills and vents the volume of a pneumatic muscle."""

    conductance: float = parameter(
        1e-8, "C, sonic conductance of the open valve", "m^3/(s Pa)", above=0.0
    )
    critical_ratio: float = parameter(
        0.3, "b, pressure ratio below which the flow is sonic", lower=0.0, upper=0.99
    )
    supply_pressure: float = parameter(7e5, "above atmosphere", "Pa", above=0.0)
    band: float = parameter(2e4, "pressure error that opens the valve fully", "Pa", above=0.0)
    polytropic_exponent: float = parameter(
        1.0, "1 isothermal .. 1.4 adiabatic", lower=1.0, upper=1.4
    )
    atmosphere: float = parameter(101325.0, "absolute pressure outside", "Pa", above=0.0)


@dataclass(frozen=True, kw_only=True)
class Pneumatic(_Actuator):
    """McKibben muscle (braided pneumatic artificial muscle)."""

    kind: ClassVar[str] = "pneumatic"
    commands: ClassVar[tuple[CommandKind, ...]] = ("pressure", "force")

    thread_length: float = parameter(
        REQUIRED, "b, length of one thread of the braid", "m", above=0.0
    )
    turns: float = parameter(REQUIRED, "n, turns of a thread around the muscle", above=0.0)
    rest_length: float = parameter(
        REQUIRED, "L0, length of the braid without pressure", "m", above=0.0
    )
    tendon_length: float = parameter(
        0.0, "inextensible rest of the path in series with the braid", "m", lower=0.0
    )
    end_correction: float = parameter(
        1.0, "k of Tondu and Lopez for the ends that stay cylindrical; 1.25..1.35", lower=1.0
    )
    threshold_pressure: float = parameter(
        0.0, "pressure that the bladder itself takes", "Pa", lower=0.0
    )
    bladder_stiffness: float = parameter(
        0.0, "kb; pushes while shorter than the rest length, pulls beyond", "N/m", lower=0.0
    )
    friction: float = parameter(
        0.03, "dry friction of the threads as a share of the tension", lower=0.0, upper=0.5
    )
    friction_speed: float = parameter(
        0.01, "speed at which friction has three quarters of its value", "m/s", above=0.0
    )
    max_pressure: float = parameter(6e5, "largest pressure, above atmosphere", "Pa", above=0.0)
    pressure_time: float = parameter(
        0.05, "time constant of the pressure where no valve is given", "s", above=0.0
    )
    valve: Valve | None = None
    thermal: Thermal | None = None

    @property
    def passive_range(self) -> tuple[float, float] | None:
        """That of the bladder: the braid from its length without pressure to its threads'."""
        if self.bladder_stiffness == 0.0:
            return None
        return self.tendon_length + self.rest_length, self.tendon_length + self.thread_length

    def _check_together(self) -> None:
        low, high = self.thread_length / math.sqrt(3.0), self.thread_length
        if not low < self.rest_length < high:
            raise ParameterError(
                f"'rest_length' {self.rest_length:g} m must lie between thread_length/sqrt(3) = "
                f"{low:g} m (fully contracted) and 'thread_length' {high:g} m"
            )
        if not self.threshold_pressure < self.max_pressure:
            raise ParameterError(
                f"'threshold_pressure' {self.threshold_pressure:g} Pa must be below "
                f"'max_pressure' {self.max_pressure:g} Pa"
            )
        if self.valve is not None and not self.valve.supply_pressure > self.max_pressure:
            raise ParameterError(
                f"'supply_pressure' {self.valve.supply_pressure:g} Pa of the valve must be "
                f"above 'max_pressure' {self.max_pressure:g} Pa"
            )


# Muscle and ligament -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Hill(_Actuator):
    """Hill-type muscle: activation, contractile and parallel element, tendon."""

    kind: ClassVar[str] = "hill"
    commands: ClassVar[tuple[CommandKind, ...]] = ("excitation", "force")
    _belongs: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "active_width": ("thelen_2003",),
        "passive_growth": ("thelen_2003",),
        "velocity_shape": ("thelen_2003",),
        "lengthening_force": ("thelen_2003", "millard_2012"),
        "active_floor": ("millard_2012",),
        "active_start": ("millard_2012",),
        "active_bend": ("millard_2012",),
        "active_end": ("millard_2012",),
        "active_slope": ("millard_2012",),
        "passive_start": ("millard_2012",),
        "passive_foot": ("millard_2012",),
        "passive_stiffness": ("millard_2012",),
        "passive_curviness": ("millard_2012",),
    }

    max_isometric_force: float = parameter(REQUIRED, "F0", "N", above=0.0)
    optimal_fiber_length: float = parameter(REQUIRED, "l_opt", "m", above=0.0)
    tendon_slack_length: float = parameter(REQUIRED, "l_slack", "m", above=0.0)
    pennation_angle: float = parameter(
        0.0, "angle of the fibres at optimal length", "rad", lower=0.0, upper=1.4
    )
    max_velocity: float = parameter(
        10.0, "v_max, fastest shortening in optimal fibre lengths per second", "1/s", above=0.0
    )
    curves: str = parameter(
        "de_groote_2016",
        "set of curves and activation dynamics",
        choices=("de_groote_2016", "thelen_2003", "millard_2012"),
    )
    tendon: str = parameter(
        "auto",
        "auto: rigid when l_slack/l_opt < 1, else elastic",
        choices=("auto", "elastic", "rigid"),
    )
    tendon_strain: float | None = parameter(
        None, "strain of the tendon at F0; 0.049, Thelen 0.04", above=0.0
    )
    damping: float = parameter(0.01, "beta, viscous force at v_max as a share of F0", above=0.0)
    activation_time: float | None = parameter(None, "tau_a; 0.015, Millard 0.010", "s", above=0.0)
    deactivation_time: float | None = parameter(
        None, "tau_d; De Groote 0.060, Thelen 0.050, Millard 0.040", "s", above=0.0
    )
    min_activation: float = parameter(
        0.01, "lowest activation, of a relaxed muscle", lower=0.0, upper=0.5
    )
    passive_strain: float | None = parameter(
        None, "e0, strain of the passive fibre at F0; 0.6, Millard 0.7", above=0.0, upper=3.0
    )
    active_width: float | None = parameter(
        None, "Thelen: gamma, width of the active force-length curve; 0.45", above=0.0, upper=10.0
    )
    passive_growth: float | None = parameter(
        None, "Thelen: kPE, growth of the passive curve; 5", above=0.0, upper=20.0
    )
    velocity_shape: float | None = parameter(
        None, "Thelen: Af, shape of the force-velocity curve; 0.25", above=0.0, upper=10.0
    )
    lengthening_force: float | None = parameter(
        None, "Thelen, Millard: largest fV of a lengthening fibre; 1.4", above=1.0, upper=10.0
    )
    active_floor: float | None = parameter(None, "Millard: smallest fL; 0.1", lower=0.0, upper=0.5)
    active_start: float | None = parameter(
        None, "Millard: shortest fibre with active force; 0.4441", lower=0.1, upper=0.9
    )
    active_bend: float | None = parameter(
        None, "Millard: fibre length where fL ceases to rise steeply; 0.73", above=0.1, upper=0.94
    )
    active_end: float | None = parameter(
        None, "Millard: longest fibre with active force; 1.8123", above=1.1, upper=4.0
    )
    active_slope: float | None = parameter(
        None, "Millard: slope of fL behind the bend; 0.8616", lower=0.0, upper=5.0
    )
    passive_start: float | None = parameter(
        None, "Millard: strain at which fP begins; 0", lower=-0.5, upper=1.0
    )
    passive_foot: float | None = parameter(
        None, "Millard: slope of fP at low force; 0.2", above=0.0, upper=10.0
    )
    passive_stiffness: float | None = parameter(
        None,
        "Millard: slope of fP at F0; 2/(passive_strain - passive_start)",
        above=0.0,
        upper=100.0,
    )
    passive_curviness: float | None = parameter(
        None, "Millard: 0 straight lines with a corner, 1 round; 0.75", lower=0.0, upper=1.0
    )
    thermal: Thermal | None = None

    def _check_together(self) -> None:
        for name, sets in self._belongs.items():
            if getattr(self, name) is not None and self.curves not in sets:
                raise ParameterError(
                    f"'{name}' belongs to curves {' and '.join(repr(item) for item in sets)}"
                )
        start = 0.4441 if self.active_start is None else self.active_start
        bend = 0.73 if self.active_bend is None else self.active_bend
        slope = 0.8616 if self.active_slope is None else self.active_slope
        if self.curves == "millard_2012":
            if not start < bend:
                raise ParameterError(
                    f"'active_start' {start:g} must be below 'active_bend' {bend:g}"
                )
            if not slope < 1.0 / (1.0 - bend):
                raise ParameterError(
                    f"'active_slope' {slope:g} must be below 1/(1 - active_bend) = "
                    f"{1.0 / (1.0 - bend):g}, so that fL rises to 1"
                )
            self._check_passive()

    def _check_passive(self) -> None:
        """Check that Millard's passive curve bends one way."""
        start, strain = self.passive_start or 0.0, self.passive_strain or 0.7
        if not start < strain:
            raise ParameterError(
                f"'passive_start' {start:g} must be below 'passive_strain' {strain:g}"
            )
        mean = 1.0 / (strain - start)
        foot = 0.2 if self.passive_foot is None else self.passive_foot
        steep = 2.0 * mean if self.passive_stiffness is None else self.passive_stiffness
        if not foot < mean < steep:
            raise ParameterError(
                f"'passive_foot' {foot:g} and 'passive_stiffness' {steep:g} must be below and "
                f"above 1/(passive_strain - passive_start) = {mean:g}"
            )

    @property
    def passive_range(self) -> tuple[float, float]:
        """From a slack tendon to a fibre of twice its optimal length, at many times F0."""
        slack = self.tendon_slack_length
        return slack, 1.1 * slack + 2.0 * self.optimal_fiber_length

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

    stiffness: float = parameter(
        REQUIRED, "k, tension per strain in the linear region", "N", above=0.0
    )
    slack_length: float = parameter(REQUIRED, "l0", "m", above=0.0)
    toe_strain: float = parameter(
        0.06, "strain at which the linear region begins", above=0.0, upper=1.0
    )
    damping: float = parameter(
        0.003, "c, tension per strain rate, while taut and lengthening", "N s", lower=0.0
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
