"""Muscles and joint motors from tendons and actuators.

MuJoCo's actuators push as well as pull: the tension of a muscle is minus the force on the tendon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from cards_core.formats.imports.model import table
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.hill import CURVES
from cards_core.robot.actuators import Actuator, Cable, Hill, Ligament
from cards_core.robot.elements import Muscle, PathElement
from cards_core.typing import Array
from cards_sim.mjcf.length_ranges import SAMPLES, has_extent, sampled_ranges
from cards_sim.mjcf.names import SCALAR_JOINTS, Names
from cards_sim.mjcf.tendons import Paths

TENSION = 1000.0
"""Largest tension of a muscle whose actuator has no limit, unless told otherwise, [N]."""

SHORTEST = 1e-9
"""Rest length of a spring that has none in MuJoCo, [m]: a ligament must have one."""

TOE_STRAIN = 1e-9
"""Of the ligament of a spring: its tension differs from K (l - l0) by K l0 5e-10."""

_DYN, _GAIN, _BIAS, _TRN = mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtTrn


@dataclass(frozen=True)
class MuscleRow:
    """What became of one muscle, for the report.

    Attributes:
        index: Of the tendon in MuJoCo.
        tendon: Its name in the file.
        muscle: Our name.
        law: MuJoCo's law of force in words.
        type: Our actuator type.
        error: What is not exact, empty if nothing.
        errors: The same as numbers: name to value.
    """

    index: int
    tendon: str
    muscle: str
    law: str
    type: str
    error: str = ""
    errors: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Force:
    """A muscle's actuator and limits, and what is said of it."""

    actuator: Actuator
    low: float
    high: float
    law: str
    error: str = ""
    errors: dict[str, float] = field(default_factory=dict)


class Actuators:
    """Makes muscles and motors.

    Args:
        names: Of the model; gets remarks and the names of muscles.
        paths: Of the tendons.
        control: Controls at the start, shape (nu,).
        tension: Largest tension where the file has no limit, [N].
        all_tendons: Tendons without a force become cables.

    Attributes:
        muscles: One per spatial tendon that has a force.
        rows: The same for the report.
        efforts: Joint to the largest effort of its motors, [Nm] or [N].
    """

    def __init__(
        self,
        names: Names,
        paths: Paths,
        control: Array,
        tension: float = TENSION,
        *,
        all_tendons: bool = False,
    ) -> None:
        self._names = names
        self._model = names.compiled.model
        self._paths = paths
        self._control = control
        self._tension = tension
        self._all_tendons = all_tendons
        self.muscles: list[Muscle] = []
        self.rows: list[MuscleRow] = []
        self.efforts: dict[int, float] = {}
        self._ranges: Array | None = None
        on_tendon: dict[int, list[int]] = {}
        for index in range(self._model.nactuator):
            self._sort(index, on_tendon)
        for tendon in range(self._model.ntendon):
            self._tendon(tendon, on_tendon.get(tendon, []))

    def _sort(self, index: int, on_tendon: dict[int, list[int]]) -> None:
        model, names = self._model, self._names
        target = int(model.actuator_trnid[index, 0])
        match int(model.actuator_trntype[index]):
            case _TRN.mjTRN_TENDON if self._paths.is_spatial(target):
                on_tendon.setdefault(target, []).append(index)
            case _TRN.mjTRN_TENDON:
                parts = self._paths.coefficients(target)
                if len(parts) == 1:
                    ((joint, factor),) = parts.items()
                    self._motor(index, joint, factor)
                    return
                joints = ", ".join(names.name("joint", j) or str(j) for j in parts)
                names.warn(
                    "fixed-tendon",
                    "actuator",
                    index,
                    f"left out: its fixed {names.label('tendon', target)} couples the "
                    f"joints {joints}",
                )
            case _TRN.mjTRN_JOINT | _TRN.mjTRN_JOINTINPARENT:
                self._motor(index, target, 1.0)
            case _:
                kind = _TRN(int(model.actuator_trntype[index])).name.removeprefix("mjTRN_")
                names.warn(
                    "transmission", "actuator", index, f"left out: transmission {kind.lower()}"
                )

    # Joint motors --------------------------------------------------------------------------

    def _motor(self, index: int, joint: int, factor: float) -> None:
        model, names = self._model, self._names
        if model.jnt_type[joint] not in SCALAR_JOINTS:
            names.warn("motor", "actuator", index, "left out: a motor of a ball or free joint")
            return
        if joint not in names.joints:
            names.warn("motor", "actuator", index, "left out: its joint is locked")
            return
        if model.actuator_gaintype[index] != _GAIN.mjGAIN_FIXED:
            names.warn("motor", "actuator", index, "left out: its force is no motor's")
            return
        gear = abs(float(model.actuator_gear[index, 0]) * factor)
        servo = model.actuator_biastype[index] != _BIAS.mjBIAS_NONE
        if servo:
            names.warn(
                "servo", "actuator", index, "its servo law is left out: the motor takes an effort"
            )
            low, high = -math.inf, math.inf
            if model.actuator_forcelimited[index]:
                low, high = (float(value) for value in model.actuator_forcerange[index])
        else:
            low, high = self._interval(index)
        self._lag_note(index)
        effort = gear * max(abs(low), abs(high))
        if math.isfinite(effort) and abs(low) != abs(high):
            names.warn(
                "one-sided",
                "actuator",
                index,
                f"effort {gear * low:g} .. {gear * high:g} becomes {-effort:g} .. {effort:g}",
            )
        if effort > 0.0:
            self.efforts[joint] = self.efforts.get(joint, 0.0) + effort
        else:
            names.warn("motor", "actuator", index, "left out: it has no force")

    def _interval(self, index: int) -> tuple[float, float]:
        """Return smallest and largest force of an actuator without feedback."""
        model = self._model
        control = int(model.actuator_ctrladr[index])
        gain = float(model.actuator_gainprm[index, 0])
        bias = 0.0
        if model.actuator_biastype[index] == _BIAS.mjBIAS_AFFINE:
            bias = float(model.actuator_biasprm[index, 0])
        low, high = -math.inf, math.inf
        if model.actuator_dyntype[index] == _DYN.mjDYN_INTEGRATOR:
            if model.actuator_actlimited[index]:
                low, high = (float(value) for value in model.actuator_actrange[index])
        elif model.actuator_ctrllimited[control]:
            low, high = (float(value) for value in model.actuator_ctrlrange[control])
        ends = sorted(gain * end + bias if gain else bias for end in (low, high))
        if model.actuator_forcelimited[index]:
            least, most = (float(value) for value in model.actuator_forcerange[index])
            ends = [min(max(end, least), most) for end in ends]
        return ends[0], ends[1]

    def _lag_note(self, index: int) -> None:
        model = self._model
        kind = _DYN(int(model.actuator_dyntype[index]))
        if kind != _DYN.mjDYN_NONE:
            text = kind.name.removeprefix("mjDYN_").lower()
            self._names.warn(
                "activation", "actuator", index, f"activation dynamics '{text}' left out"
            )
        if model.actuator_delay[index] > 0.0:
            self._names.warn(
                "delay", "actuator", index, f"delay of {model.actuator_delay[index]:g} s left out"
            )

    # Muscles -------------------------------------------------------------------------------

    def _tendon(self, tendon: int, actuators: list[int]) -> None:
        model, names = self._model, self._names
        if not self._paths.is_spatial(tendon):
            if model.tendon_stiffness[tendon] or model.tendon_damping[tendon]:
                names.warn("fixed-tendon", "tendon", tendon, "its spring or damper is left out")
            if model.tendon_limited[tendon]:
                names.warn("fixed-tendon", "tendon", tendon, "its limits are left out")
            return
        force: _Force | None = None
        label = names.name("tendon", tendon) or f"tendon_{tendon}"
        for index in actuators:
            if force is not None:
                text = f"left out: {names.label('tendon', tendon)} has another actuator"
                names.warn("second-actuator", "actuator", index, text)
                continue
            force = self._force(index, tendon)
            if force is not None:
                label = names.name("actuator", index) or label
        if force is None:
            if actuators:
                return  # said already
            force = self._spring(tendon)
            if force is None and self._all_tendons:
                text = "nothing pulls it in MuJoCo"
                force = _Force(Cable(), 0.0, self._tension, "none", text)
                names.warn("no-force", "tendon", tendon, f"a cable, though {text}")
            if force is None:
                self._without_force(tendon)
                return
        elif model.tendon_stiffness[tendon] or np.any(model.tendon_damping[tendon]):
            names.warn(
                "tendon-spring", "tendon", tendon, "spring and damper beside its actuator left out"
            )
        path = self._paths.path(tendon)
        if path is None:
            return
        self._passive_notes(tendon)
        self._add(tendon, label, path, force)

    def _add(self, tendon: int, label: str, path: tuple[PathElement, ...], force: _Force) -> None:
        name = self._names.muscles.claim(label)
        line = self._names.line("tendon", tendon)
        self.muscles.append(
            Muscle(name, path, force.low, force.high, actuator=force.actuator, line=line)
        )
        original = self._names.name("tendon", tendon) or f"tendon {tendon}"
        kind = force.actuator.kind
        self.rows.append(
            MuscleRow(tendon, original, name, force.law, kind, force.error, force.errors)
        )

    def _passive_notes(self, tendon: int) -> None:
        model, names = self._model, self._names
        if model.tendon_limited[tendon]:
            low, high = model.tendon_range[tendon]
            names.warn(
                "tendon-limit", "tendon", tendon, f"length limits {low:g} .. {high:g} m left out"
            )
        if model.tendon_frictionloss[tendon]:
            value = float(model.tendon_frictionloss[tendon])
            names.warn("tendon-friction", "tendon", tendon, f"dry friction {value:g} N left out")
        if model.tendon_armature[tendon]:
            value = float(model.tendon_armature[tendon])
            names.warn("armature", "tendon", tendon, f"armature {value:g} kg left out")

    def _without_force(self, tendon: int) -> None:
        self._passive_notes(tendon)
        if self._model.tendon_damping[tendon]:
            self._names.warn("tendon-spring", "tendon", tendon, "its damper is left out")
        self._names.warn(
            "no-force",
            "tendon",
            tendon,
            "left out: nothing pulls it (--all-tendons makes it a cable)",
        )

    def _spring(self, tendon: int) -> _Force | None:
        """Return a tendon's own spring, which takes no command."""
        model, names = self._model, self._names
        stiffness = float(model.tendon_stiffness[tendon])
        if stiffness <= 0.0:
            return None
        low, high = (float(value) for value in model.tendon_lengthspring[tendon])
        damping = float(model.tendon_damping[tendon])
        lost = []
        if low > 0.0:
            lost.append(f"below {low:g} m it pushes in MuJoCo, here it is slack")
        if damping:
            lost.append("damping acts while it is taut and gets longer, in MuJoCo always")
        polynomials = model.tendon_stiffnesspoly[tendon], model.tendon_dampingpoly[tendon]
        if np.any(polynomials) or model.tendon_springyield[tendon]:
            lost.append("only its linear stiffness and damping count here")
        for text in lost:
            names.warn("tendon-spring", "tendon", tendon, text)
        rest = max(high, SHORTEST)
        ligament = Ligament(
            stiffness=stiffness * rest,
            slack_length=rest,
            toe_strain=TOE_STRAIN,
            damping=damping * rest,
        )
        return _Force(ligament, 0.0, math.inf, "spring", "; ".join(lost))

    def _force(self, index: int, tendon: int) -> _Force | None:
        """Return what pulls at a tendon; None, with a warning, if it is nothing of ours."""
        model, names = self._model, self._names
        gain, bias = int(model.actuator_gaintype[index]), int(model.actuator_biastype[index])
        if gain == _GAIN.mjGAIN_MUSCLE:
            return self._muscle(index)
        if gain == _GAIN.mjGAIN_AFFINE and not np.any(model.actuator_gainprm[index, 1:3]):
            gain = int(_GAIN.mjGAIN_FIXED)
        if gain != _GAIN.mjGAIN_FIXED or bias not in (_BIAS.mjBIAS_NONE, _BIAS.mjBIAS_AFFINE):
            kind = _GAIN(int(model.actuator_gaintype[index])).name.removeprefix("mjGAIN_")
            names.warn("actuator", "actuator", index, f"left out: gain '{kind.lower()}'")
            return None
        feedback = model.actuator_biasprm[index, 1:3]
        self._lag_note(index)
        if bias == _BIAS.mjBIAS_AFFINE and np.any(feedback):
            return self._servo(index, tendon)
        low, high = self._interval(index)
        gear = float(model.actuator_gear[index, 0])
        least, most = sorted((-gear * low, -gear * high))
        return self._limits(index, tendon, least, most)

    def _limits(self, index: int, tendon: int, low: float, high: float) -> _Force | None:
        model, names = self._model, self._names
        if model.tendon_actfrclimited[tendon]:
            least, most = (float(value) for value in model.tendon_actfrcrange[tendon])
            low, high = max(low, -most), min(high, -least)
        if not high > 0.0:
            what = "it only pushes" if low < 0.0 else "its gear or its range gives no force"
            names.warn("pushes", "actuator", index, f"left out: {what}")
            return None
        error = ""
        if low < 0.0:
            error = "pushing left out" + (f" (to {-low:g} N)" if math.isfinite(low) else "")
            names.warn("pushes", "actuator", index, error)
        return _Force(Cable(), max(low, 0.0), self._most(index, high), "force", error)

    def _most(self, index: int, high: float) -> float:
        if math.isfinite(high):
            return high
        self._names.warn(
            "no-limit",
            "actuator",
            index,
            f"no limit of its force: {self._tension:g} N taken as the largest tension "
            "(--tension-max)",
        )
        return self._tension

    def _servo(self, index: int, tendon: int) -> _Force | None:
        """Return a position servo as an elastic cable whose rest length is commanded."""
        model, names = self._model, self._names
        kp = float(model.actuator_gainprm[index, 0])
        constant, stiffness, damping = (float(v) for v in model.actuator_biasprm[index, :3])
        gear = float(model.actuator_gear[index, 0])
        if not stiffness < 0.0 or damping > 0.0 or gear <= 0.0:
            names.warn("actuator", "actuator", index, "left out: its feedback is no spring")
            return None
        rest: float | None = (
            kp * float(self._control[int(model.actuator_ctrladr[index])]) + constant
        ) / (-stiffness * gear)
        text = "it pushes in MuJoCo where it is shorter than told; here it is slack"
        if rest is not None and rest <= 0.0:
            rest = None
            text += "; its first rest length is that of home"
        names.warn("servo", "actuator", index, text)
        most = math.inf
        if model.actuator_forcelimited[index]:
            most = -gear * float(model.actuator_forcerange[index, 0])
        if model.tendon_actfrclimited[tendon]:
            most = min(most, -float(model.tendon_actfrcrange[tendon, 0]))
        if not most > 0.0:
            names.warn("pushes", "actuator", index, "left out: it only pushes")
            return None
        cable = Cable(stiffness=-stiffness * gear**2, damping=-damping * gear**2, rest_length=rest)
        return _Force(cable, 0.0, self._most(index, most), "position servo", text)

    # Hill ------------------------------------------------------------------------------------

    def _muscle(self, index: int) -> _Force | None:
        model, names = self._model, self._names
        control = int(model.actuator_ctrladr[index])
        prm = np.array(model.actuator_gainprm[index, :9], dtype=float)
        gear = float(model.actuator_gear[index, 0])
        acc0 = float(model.actuator_acc0[index])
        peak = prm[2] if prm[2] >= 0.0 else prm[3] / max(acc0, 1e-15)
        low, high = self._length_range(index)
        span = high - low
        if not (gear > 0.0 and peak > 0.0 and prm[1] > prm[0]):
            names.warn("muscle", "actuator", index, "left out: no force, gear or range")
            return None
        if not has_extent(low, high):
            names.warn(
                "muscle", "actuator", index,
                f"left out: its length does not change ({low:.6g} .. {high:.6g} m), so it has no "
                "optimal length; does its path cross a joint?",
            )  # fmt: skip
            return None
        passive = model.actuator_biastype[index] == _BIAS.mjBIAS_MUSCLE
        if passive and not np.allclose(model.actuator_biasprm[index, :9], prm):
            names.warn("muscle", "actuator", index, "passive force has other parameters, left out")
        optimal = span / (prm[1] - prm[0]) / gear
        slack = low / gear - prm[0] * optimal
        force = float(gear * peak)
        if model.actuator_ctrllimited[control]:
            lowest, highest = (float(value) for value in model.actuator_ctrlrange[control])
            if (lowest, highest) != (0.0, 1.0):
                names.warn(
                    "excitation",
                    "actuator",
                    index,
                    f"excitation {lowest:g} .. {highest:g} becomes 0 .. 1",
                )
        if slack <= 0.0:
            text = (
                f"its tendon would be {slack:.4g} m long, so it is an ideal source of tension "
                f"up to F0 = {force:.4g} N without length, velocity and activation"
            )
            names.warn("no-tendon", "actuator", index, text)
            return _Force(Cable(), 0.0, force, "muscle", text)
        rise, fall, smooth = (float(value) for value in model.actuator_dynprm[index, :3])
        muscle_dynamics = model.actuator_dyntype[index] == _DYN.mjDYN_MUSCLE
        if not muscle_dynamics:
            self._lag_note(index)
        if smooth > 0.0 and muscle_dynamics:
            names.warn("activation", "actuator", index, f"smoothing {smooth:g} of it left out")
        curves, errors = _nearest_curves(prm)
        text = (
            f"of F0: active force differs by up to {errors['active']:.2g} at rest over the range "
            f"of lengths, by {errors['velocity']:.2g} at optimal length over velocities, passive "
            f"by {errors['passive']:.2g}"
        )
        hill = Hill(
            max_isometric_force=force,
            optimal_fiber_length=float(optimal),
            tendon_slack_length=float(slack),
            max_velocity=float(prm[6]),
            curves=curves,
            tendon="rigid",
            min_activation=0.0,
            activation_time=rise if muscle_dynamics and rise > 0.0 else None,
            deactivation_time=fall if muscle_dynamics and fall > 0.0 else None,
        )
        return _Force(hill, 0.0, force, "muscle", text, errors)

    def _length_range(self, index: int) -> tuple[float, float]:
        """Return both ends of the range of an actuator's length, [m]."""
        low, high = (float(value) for value in self._model.actuator_lengthrange[index])
        if not high > low and self._names.compiled.sampled_ranges:
            if self._ranges is None:
                self._ranges = sampled_ranges(self._model, self._names.joints, self._paths.home)
            low, high = (float(value) for value in self._ranges[index])
            if has_extent(low, high):
                self._names.warn(
                    "length-range", "actuator", index,
                    f"MuJoCo finds no length range; {low:.6g} .. {high:.6g} m is taken, over "
                    f"{SAMPLES} poses of joints within their limits, others turned all round or "
                    f"moved by {self._model.stat.extent:.3g} m",
                )  # fmt: skip
        return low, high


def _nearest_curves(prm: Array) -> tuple[str, dict[str, float]]:
    """Return the set of curves nearest to MuJoCo's, and the largest differences in F0.

    Args:
        prm: MuJoCo's range[2], force, scale, lmin, lmax, vmax, fpmax, fvmax, shape (9,).
    """
    unit = prm.copy()
    unit[2] = 1.0  # F0
    # of a muscle with l_opt = 1 and no tendon: length range is `range`
    span = np.array([prm[0], prm[1]])

    def active(length: float, velocity: float) -> float:
        return -float(mujoco.mju_muscleGain(length, velocity * prm[6], span, 1.0, unit))

    def passive(length: float) -> float:
        return -float(mujoco.mju_muscleBias(length, span, 1.0, unit))

    lengths = np.linspace(max(prm[0], 0.2), max(prm[1], 0.2), 101)
    speeds = np.linspace(-1.0, 1.0, 101)
    theirs = [
        np.array([active(x, 0.0) for x in lengths]),
        np.array([active(1.0, v) for v in speeds]),
        np.array([passive(x) for x in lengths]),
    ]
    best: tuple[str, dict[str, float]] | None = None
    for name, curve in CURVES.items():
        m: Any = NUMPY
        ours = [
            curve.active(m, lengths)[0],
            curve.velocity(m, speeds, np.ones_like(speeds))[0],
            curve.passive(m, lengths)[0],
        ]
        keys = ("active", "velocity", "passive")
        errors = {
            key: float(np.max(np.abs(a - b))) for key, a, b in zip(keys, ours, theirs, strict=True)
        }
        if best is None or max(errors.values()) < max(best[1].values()):
            best = name, errors
    assert best is not None
    return best


def muscle_table(rows: list[MuscleRow]) -> str:
    """Return what became of the muscles as a Markdown table."""
    if not rows:
        return "None."
    cells = [
        [f"`{row.tendon}`", f"`{row.muscle}`", row.law, row.type, row.error or "exact"]
        for row in rows
    ]
    return table(["tendon", "muscle", "in MuJoCo", "here", "error"], cells)
