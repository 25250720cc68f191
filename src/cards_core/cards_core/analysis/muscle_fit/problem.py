"""Residuals of a fit and their derivatives, and how far each goal is from being met.

A miss over its tolerance is the *ratio* of a goal at a pose: all are at most 1 where a goal is met.
The cost is the sum over goals of ``weight * mean of ratio^2 / 2``, with torques and margins asked
for by a tolerance more than wanted, so that the border of what is wanted is not where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RequiredWrenches, distances
from cards_core.analysis.muscle_fit.margins import (
    closure_margin,
    single_shortfall,
    torque_shortfall,
)
from cards_core.analysis.muscle_fit.moment_arms import LinkMotion, MusclePath, link_motion
from cards_core.analysis.muscle_fit.specification import (
    ArmGoal,
    ClosureGoal,
    FitSpecification,
    Goal,
    TorqueGoal,
    wraps_near,
)
from cards_core.analysis.muscle_fit.variables import radius_of
from cards_core.dynamics.batch import BatchState
from cards_core.errors import UnknownNameError
from cards_core.formats.sdf.muscle_path import depth_inside, inside_problem
from cards_core.robot.elements import Cylinder, Muscle, Sphere, Wrap, WrapSurface
from cards_core.robot.model import Robot
from cards_core.typing import Array

CLEARANCE = 5e-4
"""Distance that via points keep from the surfaces beside them, [m], where they have it now."""

DEPTH_UNIT = 1e-3
"""Depth within a surface that counts as much as a moment arm at its tolerance, [m]."""


@dataclass(frozen=True, eq=False)
class Row:
    """Derivative of one ratio with respect to the rows of L of all muscles.

    Attributes:
        pose: Index of the pose.
        ratio: Index of the ratio.
        weights: ``d ratio = sum weights[i, j] dL[i, j]``, shape (m, nv).
    """

    pose: int
    ratio: int
    weights: Array


class FitProblem:
    """Residuals of a specification at its poses.

    Args:
        specification: What is wanted.
        motion: Of the links at its poses, if that is known already.
    """

    def __init__(self, specification: FitSpecification, motion: LinkMotion | None = None) -> None:
        self.specification = specification
        robot, q = specification.robot, specification.q
        self._nv = robot.tree.nv
        self.motion = link_motion(robot, q) if motion is None else motion
        self._rows = [np.flatnonzero(used) for used in _used(specification)]
        self._paths = [
            MusclePath(robot, muscle, _part(self.motion, rows)) if len(rows) else None
            for muscle, rows in zip(robot.muscles, self._rows, strict=True)
        ]
        variables = specification.variables
        self._surfaces = [surfaces_of(muscle) for muscle in robot.muscles]
        self._moving = [
            bool(variables.columns(i))
            or any(radius.surface in self._surfaces[i] for radius in variables.radii)
            for i in range(len(robot.muscles))
        ]
        self._last: tuple[Array, list[tuple[Array, list[Row]]]] | None = None
        unknown = np.full((len(q), len(robot.muscles), self._nv), np.nan)
        self._fixed_arms = self._fill(
            unknown,
            variables.positions_of(robot),
            {radius.surface: radius_of(robot, radius.surface) for radius in variables.radii},
        )
        self._depths = _Depths(specification, self.motion)

    # Values ---------------------------------------------------------------------------------------

    def arms(self, y: Array) -> Array:
        """Return L at all poses, shape (n, m, nv); NaN where no goal asks for it."""
        variables = self.specification.variables
        places, radii = variables.positions(y), variables.radius_values(y)
        return self._fill(self._fixed_arms.copy(), places, radii)

    def arms_of(self, robot: Robot) -> Array:
        """Return L as `arms` of a robot that differs in fitted points and radii alone."""
        variables = self.specification.variables
        radii = {radius.surface: radius_of(robot, radius.surface) for radius in variables.radii}
        return self._fill(self._fixed_arms.copy(), variables.positions_of(robot), radii)

    def _fill(self, out: Array, places: list[Array], radii: dict[str, float]) -> Array:
        for i, path in enumerate(self._paths):
            if path is not None and (self._moving[i] or np.isnan(out[self._rows[i], i]).any()):
                out[self._rows[i], i] = path.arms(places[i], radii)
        return out

    def residuals(self, y: Array) -> Array:
        """Return r, shape (k,): ratios times the square root of their share in the cost."""
        parts = [
            _share(goal) * _counted(goal, ratios)
            for goal, (ratios, _) in zip(
                self.specification.goals, self._evaluate(y), strict=True
            )
        ]
        return np.concatenate([*parts, self._depths.residuals(y)])

    def _evaluate(self, y: Array) -> list[tuple[Array, list[Row]]]:
        """Return ratios and their derivatives for every goal; those of the last y are kept."""
        if self._last is None or not np.array_equal(self._last[0], y):
            arms = self.arms(y)
            found = [self.ratios(goal, arms, aim=1.0) for goal in self.specification.goals]
            self._last = y.copy(), found
        return self._last[1]

    def largest_miss(self, y: Array) -> float:
        """Return a bound of the ratios of all goals; at most 1 only where all are met.

        Of torques it is that of a range a tolerance wider: within it the shortfall is no larger,
        because it is a convex function of the torque.
        """
        largest = 0.0
        for goal, (ratios, _) in zip(self.specification.goals, self._evaluate(y), strict=True):
            misses = ratios - 1.0 if isinstance(goal, ClosureGoal) else np.abs(ratios)
            largest = max(largest, float(misses.max()))
        return largest

    def excess(self, goal: Goal, arms: Array) -> Array:
        """Return the ratios of a goal by pose, shape (n,): 0 where there is more than wanted."""
        ratios, _ = self.ratios(goal, arms)
        if isinstance(goal, ArmGoal):
            return ratios
        return np.maximum(ratios.reshape(len(goal.rows), -1).max(axis=1), 0.0)

    def ratios(
        self, goal: Goal, arms: Array, *, aim: float = 0.0
    ) -> tuple[Array, list[Row]]:
        """Return the misses of a goal over its tolerance.

        Args:
            goal: The goal.
            arms: L, see `arms`.
            aim: Tolerances by which more than wanted is asked of torques and margins.

        Returns:
            Ratios, shape (k,): of arms with a sign, one per pose; of margins one per pose,
            negative where there is more than wanted; of torques two per pose, both ends. And
            derivatives of those of torques and margins that are above 0.

        Raises:
            UnknownNameError: No such type of goal.
        """
        if isinstance(goal, ArmGoal):
            values = -arms[goal.rows, goal.muscle, goal.coordinate.v]
            return (values - goal.wanted) / goal.tolerance, []
        if isinstance(goal, ClosureGoal):
            return self._closure_ratios(goal, arms, aim)
        if isinstance(goal, TorqueGoal):
            return self._torque_ratios(goal, arms, aim)
        raise UnknownNameError.of_type("goal", goal, get_args(Goal))

    def _closure_ratios(
        self, goal: ClosureGoal, arms: Array, aim: float
    ) -> tuple[Array, list[Row]]:
        actuation = self.specification.actuation
        scale = actuation.scale(goal.length)
        chosen, coordinates = self.chosen, self.free_coordinates
        scale = scale[np.isin(actuation.coordinates, coordinates)]
        ratios, rows = np.empty(len(goal.rows)), []
        for k, pose in enumerate(goal.rows):
            matrix = arms[pose][np.ix_(chosen, coordinates)] * scale
            rho, c, share = closure_margin(matrix)
            ratios[k] = (goal.margin - rho) / goal.tolerance + aim
            if ratios[k] > 0.0:
                weights = np.zeros(arms.shape[1:])
                weights[np.ix_(chosen, coordinates)] = -np.outer(share, c * scale) / goal.tolerance
                rows.append(Row(int(pose), k, weights))
        return ratios, rows

    def margins(self, goal: ClosureGoal, arms: Array) -> Array:
        """Return the closure margin of every pose of a goal, shape (n,)."""
        ratios, _ = self._closure_ratios(goal, arms, 0.0)
        return goal.margin - ratios * goal.tolerance

    def _torque_ratios(
        self, goal: TorqueGoal, arms: Array, aim: float
    ) -> tuple[Array, list[Row]]:
        actuation = self.specification.actuation
        coordinates = actuation.coordinates
        chosen = self.chosen
        ratios, rows = np.zeros((len(goal.rows), 2)), []
        where = np.flatnonzero(coordinates == goal.coordinate.v)
        if not len(where):  # a motor without limit gives whatever is asked
            return ratios.ravel(), rows
        column = int(where[0])
        matrices = self.actuator_rows(arms[goal.rows])
        load = np.zeros((len(goal.rows), len(coordinates)))
        if goal.gravity:
            load = self.specification.gravity[goal.rows][:, coordinates]
        more = aim * goal.tolerance
        for side, end in enumerate((goal.low - more, goal.high + more)):
            wanted = load.copy()
            wanted[:, column] += end
            for k in self._perhaps_short(goal, matrices, wanted):
                d, e, f = _shortfall(goal, actuation, matrices[k], wanted[k], column)
                ratios[k, side] = d / goal.tolerance
                if d > 0.0:
                    weights = np.zeros(arms.shape[1:])
                    part = -np.outer(f[: len(chosen)], e) / goal.tolerance
                    weights[np.ix_(chosen, coordinates)] = part
                    rows.append(Row(int(goal.rows[k]), 2 * k + side, weights))
        return ratios.ravel(), rows

    def _perhaps_short(self, goal: TorqueGoal, matrices: Array, wanted: Array) -> Any:
        """Return the poses, among those of a goal, at which a torque may be out of reach.

        The others are found by native code, all at once.
        """
        if not goal.alone:
            return range(len(wanted))
        actuation = self.specification.actuation
        _, d = distances(
            matrices,
            actuation.lower,
            actuation.upper,
            RequiredWrenches(wanted),
            np.ones(wanted.shape[1]),
        )
        return np.flatnonzero(d != 0.0)

    def actuator_rows(self, arms: Array) -> Array:
        """Return the rows of L that give torque, motors among them, shape (n, rows, nv)."""
        return self.specification.actuation.jacobian(_state(arms))

    @property
    def chosen(self) -> list[int]:
        """Muscles that take a tension."""
        return [i for i, m in enumerate(self.specification.robot.muscles) if m.takes_tension]

    @property
    def free_coordinates(self) -> Array:
        """Velocities without a motor of their own, which force closure asks for."""
        actuation = self.specification.actuation
        motors = self.actuator_rows(np.zeros((1, len(self._paths), self._nv)))[0]
        driven = np.any(motors[actuation.muscles :] != 0.0, axis=0)
        return np.asarray(actuation.coordinates[~driven])

    # Derivatives ----------------------------------------------------------------------------------

    def linearise(self, y: Array) -> tuple[Array, Array]:
        """Return r and its Jacobian, shapes (k,) and (k, size)."""
        gradients = [self._muscle_gradient(i, y) for i in range(len(self._paths))]
        values, jacobians = [], []
        for goal, (ratios, rows) in zip(self.specification.goals, self._evaluate(y), strict=True):
            jacobian = np.zeros((len(ratios), len(y)))
            if isinstance(goal, ArmGoal) and (found := gradients[goal.muscle]) is not None:
                columns, place, gradient = found
                slopes = gradient[place[goal.rows], goal.coordinate.v]
                jacobian[:, columns] = -slopes / goal.tolerance[:, None]
            for row in rows:
                self._add_row(jacobian[row.ratio], row, gradients)
            values.append(_share(goal) * _counted(goal, ratios))
            jacobians.append(_share(goal) * jacobian)
        depths, depth_jacobian = self._depths.linearise(y)
        return np.concatenate([*values, depths]), np.vstack([*jacobians, depth_jacobian])

    def _add_row(
        self, out: Array, row: Row, gradients: list[tuple[Array, Array, Array] | None]
    ) -> None:
        for i in np.flatnonzero(row.weights.any(axis=1)):
            found = gradients[i]
            if found is not None:
                columns, place_of_pose, gradient = found
                out[columns] += row.weights[i] @ gradient[place_of_pose[row.pose]]

    def _muscle_gradient(self, i: int, y: Array) -> tuple[Array, Array, Array] | None:
        """Return dL_i/dy of a muscle that moves: columns, place of every pose, (n, nv, columns)."""
        path = self._paths[i]
        if path is None or not self._moving[i]:
            return None
        variables = self.specification.variables
        places, radii = variables.positions(y)[i], variables.radius_values(y)
        moved = variables.columns(i)
        parts, columns = [], []
        if moved:
            gradient = path.gradient(places, radii, wanted=[point for point, _, _ in moved])
            for k, (_, first, factors) in enumerate(moved):
                parts.append(gradient[:, :, k] * factors)
                columns += [first, first + 1, first + 2]
        for k, radius in enumerate(variables.radii, 3 * len(variables.points)):
            if radius.surface in self._surfaces[i]:
                slope = path.radius_gradient(places, radii, radius.surface)
                parts.append(slope[:, :, None] * 0.5 * (radius.upper - radius.lower))
                columns.append(k)
        place = np.full(len(self.specification.q), -1)
        place[self._rows[i]] = np.arange(len(self._rows[i]))
        return _merged(np.array(columns), place, np.concatenate(parts, axis=2))


def surfaces_of(muscle: Muscle) -> set[str]:
    """Return the names of the surfaces that a muscle wraps over."""
    return {item.surface for item in muscle.path if isinstance(item, Wrap)}


def _merged(columns: Array, place: Array, gradient: Array) -> tuple[Array, Array, Array]:
    """Add up columns that stand there twice: a muscle with a point and its mirror image."""
    unique, inverse = np.unique(columns, return_inverse=True)
    out = np.zeros((*gradient.shape[:2], len(unique)))
    for k, column in enumerate(inverse):
        out[:, :, column] += gradient[:, :, k]
    return unique, place, out


def _counted(goal: Goal, ratios: Array) -> Array:
    """Return what counts of ratios: more torque or margin than wanted costs nothing."""
    return ratios if isinstance(goal, ArmGoal) else np.maximum(ratios, 0.0)


def _share(goal: Goal) -> float:
    count = len(goal.rows) * (2 if isinstance(goal, TorqueGoal) else 1)
    return float(np.sqrt(goal.weight / count))


def _shortfall(
    goal: TorqueGoal, actuation: Actuation, rows: Array, wanted: Array, column: int
) -> tuple[float, Array, Array]:
    if goal.alone:
        return torque_shortfall(rows, actuation.lower, actuation.upper, wanted)
    d, sign, f = single_shortfall(
        rows[:, column], actuation.lower, actuation.upper, wanted[column]
    )
    e = np.zeros(len(wanted))
    e[column] = sign
    return d, e, f


def _state(arms: Array) -> BatchState:
    """Return a state that has L alone."""
    nothing = np.zeros(0)
    return BatchState(nothing, nothing, nothing, nothing, arms)


def _used(specification: FitSpecification) -> Array:
    """Return which poses are asked of which muscle, shape (m, n)."""
    robot = specification.robot
    used = np.zeros((len(robot.muscles), len(specification.q)), dtype=bool)
    takes = [i for i, m in enumerate(robot.muscles) if m.takes_tension]
    for goal in specification.goals:
        if isinstance(goal, ArmGoal):
            used[goal.muscle, goal.rows] = True
        else:
            used[np.ix_(takes, goal.rows)] = True
    return used


def _part(motion: LinkMotion, rows: Array) -> LinkMotion:
    return LinkMotion(
        motion.rotation[rows], motion.position[rows], motion.linear[rows], motion.angular[rows]
    )


# Clearance ---------------------------------------------------------------------------------------


class _Depths:
    """Keeps via points out of the surfaces that their muscles wrap over there.

    Args:
        specification: The fit.
        motion: Of the links at its poses.
    """

    def __init__(self, specification: FitSpecification, motion: LinkMotion) -> None:
        self._specification = specification
        robot = specification.robot
        index = {link.name: k for k, link in enumerate(robot.links)}
        world = len(robot.links)
        variables = specification.variables
        self._pairs: list[tuple[int, int, WrapSurface, Array, Array]] = []
        resized = {radius.surface for radius in variables.radii}
        for i in range(len(robot.muscles)):
            moved = {point for point, _, _ in variables.columns(i)}
            for point, wrap in wraps_near(robot, i):
                surface = robot.wrap_surface(wrap.surface)
                if point not in moved and wrap.surface not in resized:
                    continue
                place = robot.muscles[i].via_points[point]
                if wrap.inside and inside_problem(wrap, surface, _centre(surface)) is None:
                    continue  # in the bore is where the muscle runs
                a = index.get(place.link, world)
                b = index.get(surface.link, world)
                # from the point's link to the surface's link, at all poses where they differ
                turn = np.einsum("nji,njk->nik", motion.rotation[:, b], motion.rotation[:, a])
                shift = motion.position[:, a] - motion.position[:, b]
                shift = np.einsum("nji,nj->ni", motion.rotation[:, b], shift)
                poses = np.zeros(1, dtype=int) if a == b else np.arange(len(turn))
                self._pairs.append((i, point, surface, turn[poses], shift[poses]))
        self._allowed = [np.full(len(pair[3]), -CLEARANCE) for pair in self._pairs]
        present = self._depths(variables.start)
        self._allowed = [np.maximum(-CLEARANCE, depths) for depths in present]

    def _depths(self, y: Array) -> list[Array]:
        variables = self._specification.variables
        places, radii = variables.positions(y), variables.radius_values(y)
        out = []
        for i, point, surface, turn, shift in self._pairs:
            resized = _with_radius(surface, radii)
            local = turn @ places[i][point] + shift
            out.append(np.array([depth_inside(resized, x) for x in local]))
        return out

    def residuals(self, y: Array) -> Array:
        """Return how much deeper points are than allowed, shape (k,)."""
        parts = [
            np.maximum(depths - allowed, 0.0) / DEPTH_UNIT
            for depths, allowed in zip(self._depths(y), self._allowed, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def linearise(self, y: Array) -> tuple[Array, Array]:
        """Return residuals and their Jacobian, by differences."""
        r = self.residuals(y)
        jacobian = np.zeros((len(r), len(y)))
        if r.any():
            for k in range(len(y)):
                step = np.zeros(len(y))
                step[k] = 1e-6
                change = self.residuals(y + step) - self.residuals(y - step)
                jacobian[:, k] = change / 2e-6
        return r, jacobian


def _centre(surface: WrapSurface) -> Array:
    return np.asarray(surface.pose.translation)


def _with_radius(surface: WrapSurface, radii: dict[str, float]) -> WrapSurface:
    if surface.name not in radii:
        return surface
    assert isinstance(surface.geometry, Sphere | Cylinder)
    return replace(surface, geometry=replace(surface.geometry, radius=radii[surface.name]))

