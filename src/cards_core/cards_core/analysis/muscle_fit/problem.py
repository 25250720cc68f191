"""Residuals of a fit and their derivatives, and how far each goal is from being met.

A miss over its tolerance is the *ratio* of a goal at a pose: at most 1 where the goal is met. The
cost is the sum over goals of ``weight * mean of ratio^2 / 2``, with torques and margins asked
for by a tolerance more than wanted, so that the border of what is wanted is not where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RequiredWrenches, distances
from cards_core.analysis.muscle_fit.clearance import Clearance
from cards_core.analysis.muscle_fit.margins import (
    closure_margin,
    single_shortfall,
    torque_shortfall,
)
from cards_core.analysis.muscle_fit.moment_arms import LinkMotion, MusclePath, link_motion
from cards_core.analysis.muscle_fit.specification import (
    ClosureGoal,
    FitSpecification,
    Goal,
    PathGoal,
    TorqueGoal,
)
from cards_core.analysis.muscle_fit.variables import radius_of
from cards_core.dynamics.batch import BatchState
from cards_core.errors import UnknownNameError
from cards_core.paths.layout import Indices
from cards_core.robot.elements import Muscle, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class Row:
    """Derivative of one ratio with respect to the rows of all muscles.

    Attributes:
        pose: Index of the pose.
        ratio: Index of the ratio.
        weights: ``d ratio = sum weights[i, j] drow[i, j]``, shape (m, nv + 1).
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
        unknown = np.full((len(q), len(robot.muscles), self._nv + 1), np.nan)
        self._fixed_rows = self._fill(
            unknown,
            variables.positions_of(robot),
            {radius.surface: radius_of(robot, radius.surface) for radius in variables.radii},
        )
        self._depths = Clearance(specification, self.motion)

    # Values --------------------------------------------------------------------------------------

    def rows(self, y: Array) -> Array:
        """Return L and lengths at all poses, shape (n, m, nv + 1); NaN where no goal asks.

        The last of the nv + 1 numbers is the length, [m].
        """
        variables = self.specification.variables
        places, radii = variables.positions(y), variables.radius_values(y)
        return self._fill(self._fixed_rows.copy(), places, radii)

    def rows_of(self, robot: Robot) -> Array:
        """Return `rows` of a robot that differs in fitted points and radii alone."""
        variables = self.specification.variables
        radii = {radius.surface: radius_of(robot, radius.surface) for radius in variables.radii}
        return self._fill(self._fixed_rows.copy(), variables.positions_of(robot), radii)

    def _fill(self, out: Array, places: list[Array], radii: dict[str, float]) -> Array:
        for i, path in enumerate(self._paths):
            if path is not None and (self._moving[i] or np.isnan(out[self._rows[i], i]).any()):
                out[self._rows[i], i] = path.row(places[i], radii)
        return out

    def residuals(self, y: Array, slack: float = 0.0) -> Array:
        """Return r, shape (k,): ratios times the square root of their share in the cost.

        Args:
            y: shape (size,).
            slack: Ratio of moment arms and lengths up to which they cost nothing.
        """
        parts = [
            _share(goal) * _counted(goal, ratios, slack)
            for goal, (ratios, _) in zip(self.specification.goals, self._evaluate(y), strict=True)
        ]
        return np.concatenate([*parts, self._depths.residuals(y)])

    def _evaluate(self, y: Array) -> list[tuple[Array, list[Row]]]:
        """Return ratios and their derivatives for every goal; those of the last y are kept."""
        if self._last is None or not np.array_equal(self._last[0], y):
            rows = self.rows(y)
            found = [self.ratios(goal, rows, aim=1.0) for goal in self.specification.goals]
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
        if isinstance(goal, PathGoal):
            return np.asarray(ratios)
        worst: Array = ratios.reshape(len(goal.rows), -1).max(axis=1)
        return np.maximum(worst, 0.0)

    def ratios(self, goal: Goal, arms: Array, *, aim: float = 0.0) -> tuple[Array, list[Row]]:
        """Return the misses of a goal over its tolerance.

        Args:
            goal: The goal.
            arms: L and lengths, see `rows`.
            aim: Tolerances by which more than wanted is asked of torques and margins.

        Returns:
            Ratios, shape (k,): of arms and lengths with a sign, one per pose; of margins one per
            pose, negative where there is more than wanted; of torques two per pose, both ends. And
            derivatives of those of torques and margins that are above 0.

        Raises:
            UnknownNameError: No such type of goal.
        """
        if isinstance(goal, PathGoal):
            return (goal.values(arms) - goal.wanted) / goal.tolerance, []
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
        ratios, rows = np.empty(len(goal.rows)), list[Row]()
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

    def _torque_ratios(self, goal: TorqueGoal, arms: Array, aim: float) -> tuple[Array, list[Row]]:
        actuation = self.specification.actuation
        coordinates = actuation.coordinates
        chosen = self.chosen
        ratios, rows = np.zeros((len(goal.rows), 2)), list[Row]()
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

    def _perhaps_short(self, goal: TorqueGoal, matrices: Array, wanted: Array) -> Indices:
        """Return the poses, among those of a goal, at which a torque may be out of reach.

        The others are found by native code, all at once.
        """
        if not goal.alone:
            return np.arange(len(wanted))
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
        return self.specification.actuation.jacobian(_state(np.ascontiguousarray(arms[..., :-1])))

    @property
    def chosen(self) -> Indices:
        """Muscles that take a tension."""
        return _takers(self.specification.robot)

    @property
    def free_coordinates(self) -> Indices:
        """Velocities without a motor of their own, which force closure asks for."""
        actuation = self.specification.actuation
        motors = self.actuator_rows(np.zeros((1, len(self._paths), self._nv + 1)))[0]
        driven = np.any(motors[actuation.muscles :] != 0.0, axis=0)
        return np.asarray(actuation.coordinates[~driven], dtype=np.intp)

    # Derivatives ---------------------------------------------------------------------------------

    def linearise(self, y: Array, slack: float = 0.0) -> tuple[Array, Array]:
        """Return r and its Jacobian, shapes (k,) and (k, size); arguments as of `residuals`."""
        gradients = [self._muscle_gradient(i, y) for i in range(len(self._paths))]
        values, jacobians = [], []
        for goal, (ratios, rows) in zip(self.specification.goals, self._evaluate(y), strict=True):
            jacobian = np.zeros((len(ratios), len(y)))
            if isinstance(goal, PathGoal) and (found := gradients[goal.muscle]) is not None:
                columns, place, gradient = found
                slopes = goal.sign * gradient[place[goal.rows], goal.column]
                slopes = np.where(np.abs(ratios)[:, None] > slack, slopes, 0.0)
                jacobian[:, columns] = slopes / goal.tolerance[:, None]
            for row in rows:
                self._add_row(jacobian[row.ratio], row, gradients)
            values.append(_share(goal) * _counted(goal, ratios, slack))
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
        """Return the slopes of a row over y: columns, places of poses, (n, nv + 1, columns).

        None of a muscle that does not move.
        """
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


def _counted(goal: Goal, ratios: Array, slack: float) -> Array:
    """Return what counts of ratios: more torque or margin than wanted costs nothing."""
    if isinstance(goal, PathGoal):
        return ratios - np.clip(ratios, -slack, slack)
    return np.maximum(ratios, 0.0)


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


def _takers(robot: Robot) -> Indices:
    takes = [i for i, muscle in enumerate(robot.muscles) if muscle.takes_tension]
    return np.array(takes, dtype=np.intp)


def _used(specification: FitSpecification) -> npt.NDArray[np.bool_]:
    """Return which poses are asked of which muscle, shape (m, n)."""
    robot = specification.robot
    used = np.zeros((len(robot.muscles), len(specification.q)), dtype=bool)
    takes = _takers(robot)
    for goal in specification.goals:
        if isinstance(goal, PathGoal):
            used[goal.muscle, goal.rows] = True
        else:
            used[np.ix_(takes, goal.rows)] = True
    return used


def _part(motion: LinkMotion, rows: Indices) -> LinkMotion:
    return LinkMotion(
        motion.rotation[rows], motion.position[rows], motion.linear[rows], motion.angular[rows]
    )
