"""Feasibility of trajectories: against a second method, and against cases solved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import bodies, cable, cables, link, minimal, write
from scipy.optimize import lsq_linear

from cards_core.formats.caspr import import_caspr
from cards_core.formats.caspr.feasibility import Actuation, balance_residual

MASS = 2.0
G = 9.81


def lift(folder, motion, *, f_max, cable_set=None, extra="", spaces=None):
    """A mass that slides along z, held by one cable from above."""
    text = bodies(
        link(1, "P_AXIS", mass=MASS, q_min="-1", q_max="2", extra=f'axis="0 0 1" {extra}')
    )
    rope = cable("rope", [(0, "0 0 5"), (1, "0 0 0")], limits=(0.5, f_max))
    sets = cables({"main": [rope], "none": []})
    parts = {"bodies": text, "cables": sets, "trajectories": motion}
    if spaces:
        parts["operational_spaces"] = spaces
    return import_caspr(minimal(folder, **parts), cable_set=cable_set, samples=21)


def quintic(*rows, space="joint", letter="q"):
    """Rows are (duration, position, velocity, acceleration)."""
    points = "".join(
        f'<point time="{t}"><{letter}>{p}</{letter}><{letter}_dot>{v}</{letter}_dot>'
        f"<{letter}_ddot>{a}</{letter}_ddot></point>"
        for t, p, v, a in rows
    )
    return (
        f"<trajectories><{space}_trajectories><quintic_spline_trajectory id='m' time_step='0.01' "
        f"time_definition='relative'><points>{points}</points></quintic_spline_trajectory>"
        f"</{space}_trajectories></trajectories>"
    )


HOLD = quintic((0, 0, 0, 0), (1, 0, 0, 0))
THROW = quintic((0, 0, 0, 5), (1, 2.5, 5, 5))  # z = 5 t^2 / 2: constant acceleration


def result(model):
    (found,) = model.report.feasibility
    return found


def test_weight_is_held(tmp_path):
    found = result(lift(tmp_path, HOLD, f_max=MASS * G + 1e-3))
    assert (found.static_fraction, found.dynamic_fraction) == (1.0, 1.0)
    assert found.first_static_failure is None


def test_weight_is_too_much(tmp_path):
    model = lift(tmp_path, HOLD, f_max=MASS * G - 1e-3)
    found = result(model)
    assert (found.static_fraction, found.dynamic_fraction) == (0.0, 0.0)
    assert found.first_static_failure == 0.0
    assert "trajectory-infeasible" in [item.code for item in model.report.warnings]


def test_acceleration_counts_in_the_dynamic_check_only(tmp_path):
    enough, less = (MASS * (G + 5) + d for d in (1e-3, -1e-3))
    found = result(lift(tmp_path / "a", THROW, f_max=enough))
    assert (found.static_fraction, found.dynamic_fraction) == (1.0, 1.0)
    found = result(lift(tmp_path / "b", THROW, f_max=less))
    assert (found.static_fraction, found.dynamic_fraction) == (1.0, 0.0)


@pytest.mark.parametrize(("missing", "feasible"), [(-1e-3, True), (1e-3, False)])
@pytest.mark.parametrize("above", [True, False])
def test_a_passive_spring_helps_or_loads_the_cable_and_is_not_commanded(
    tmp_path, above, missing, feasible
):
    """K (l - l0) = 2 (5 - 4) N from above or from below; one from below that is slack."""

    def spring(name, z, rest):
        return cable(
            name,
            [(0, f"0 0 {z}"), (1, "0 0 0")],
            kind="cable_passive_linear_spring",
            properties=f"<K>2</K><l0>{rest}</l0>",
        )

    pull = 2.0 if above else -2.0
    rope = cable("rope", [(0, "0 0 5"), (1, "0 0 0")], limits=(0.5, MASS * G - pull - missing))
    sets = {"main": [spring("s", 5 if above else -5, 4), rope, spring("slack", -3, 3.5)]}
    text = bodies(link(1, "P_AXIS", mass=MASS, q_min="-1", q_max="2", extra='axis="0 0 1"'))
    model = import_caspr(
        minimal(tmp_path, bodies=text, cables=cables(sets), trajectories=HOLD), samples=3
    )
    assert result(model).static_fraction == (1.0 if feasible else 0.0)


def test_joint_limits_are_looked_at(tmp_path):
    # the upper limit 2 is passed at t = sqrt(0.8) = 0.894; samples every 0.05 s
    found = result(lift(tmp_path, THROW, f_max=1e3))
    assert found.outside_limits == pytest.approx(0.9)


def test_first_failure_in_time(tmp_path):
    """From rest to rest over 4 m in 1 s: it accelerates up in the first half only."""
    motion = quintic((0, 0, 0, 0), (1, 1, 0, 0))
    found = result(lift(tmp_path, motion, f_max=MASS * (G + 3)))
    # z'' = 60 t - 180 t^2 + 120 t^3 exceeds 3 between the first samples 0.05 and 0.1
    times = np.linspace(0, 1, 21)
    too_much = 60 * times - 180 * times**2 + 120 * times**3 > 3
    # on the way down the cable cannot push: z'' < -g + 0.5 / m is never asked for
    assert found.first_dynamic_failure == pytest.approx(times[too_much][0])
    assert found.dynamic_fraction == pytest.approx(1 - too_much.mean())


def test_a_motor_needs_no_cable(tmp_path):
    found = result(lift(tmp_path, HOLD, f_max=1, cable_set="none", extra='actuated="true"'))
    assert found.dynamic_fraction == 1.0
    found = result(lift(tmp_path, HOLD, f_max=1, cable_set="none"))
    assert found.dynamic_fraction == 0.0


SPACES = """<operational_spaces default_operational_set="p"><operational_set id="p">
<position marker_id="1" name="p"><link>1</link><offset>0 0 0</offset>
<axes active_axes="z"/></position></operational_set></operational_spaces>"""


def test_operational_trajectory(tmp_path):
    motion = THROW.replace("joint_tra", "operational_tra")
    for tag in ("q", "q_dot", "q_ddot"):
        motion = motion.replace(f"<{tag}>", f"<{tag.replace('q', 'y')}>")
        motion = motion.replace(f"</{tag}>", f"</{tag.replace('q', 'y')}>")
    enough, less = (MASS * (G + 5) + d for d in (1e-3, -1e-3))
    good = result(lift(tmp_path / "a", motion, f_max=enough, spaces=SPACES))
    # z above the joint limit 2 cannot be reached
    assert good.unreachable == pytest.approx(0.9)
    assert good.dynamic_fraction == pytest.approx(18 / 21)
    bad = result(lift(tmp_path / "b", motion, f_max=less, spaces=SPACES))
    assert bad.static_fraction == pytest.approx(18 / 21)
    assert bad.dynamic_fraction == 0.0


def test_orientation_is_not_checked(tmp_path):
    spaces = SPACES.replace("position", "orientation_euler_xyz").replace(
        "<offset>0 0 0</offset>", ""
    )
    spaces = spaces.replace('axes="z"', 'axes="g"')
    motion = (
        THROW.replace("joint_tra", "operational_tra").replace("<q", "<y").replace("</q", "</y")
    )
    motion = motion.replace("yuintic", "quintic")
    model = lift(tmp_path, motion, f_max=100, spaces=spaces)
    assert result(model).skipped
    assert "trajectory-unchecked" in [item.code for item in model.report.findings]


def test_redundant_arm_may_move_in_its_null_space(tmp_path):
    """The task says nothing of the second joint, which no cable holds: it falls.

    While the task moves, that is a motion; while it rests, the robot is not held.
    """
    text = bodies(
        link(1, "P_AXIS", mass=1, q_min="-9", q_max="9", extra='axis="0 0 1"'),
        link(2, "R_Y", mass=1, com="1 0 0", inertia="0.1 0.1 0.1 0 0 0", q_min="-9", q_max="9"),
    )
    rope = cables({"m": [cable("rope", [(0, "0 0 5"), (1, "0 0 0")], limits=(0, 100))]})

    def found(name, motion):
        motion = motion.replace("joint_tra", "operational_tra")
        motion = motion.replace("<q", "<y").replace("</q", "</y").replace("yuintic", "quintic")
        parts = {"trajectories": motion, "operational_spaces": SPACES}
        return import_caspr(write(tmp_path / name, bodies=text, cables=rope, **parts), samples=3)

    hold, throw = found("hold", HOLD), found("throw", THROW)
    assert result(hold).static_fraction == result(throw).static_fraction == 0.0
    assert result(throw).dynamic_fraction == 1.0  # the first moves while the second falls
    assert result(hold).dynamic_fraction == 0.0  # what is held must be held
    counts = "trajectories feasible at every sample: static 0 of 1, dynamic {} of 1, {} warning"
    # one of them is that nothing drives the second joint
    assert counts.format(0, 2) in hold.report.summary()
    assert counts.format(1, 1) in throw.report.summary()
    assert "trajectory-infeasible" in [item.code for item in hold.report.warnings]
    (note,) = (item for item in throw.report.findings if item.code == "trajectory-not-static")
    assert "0 % of 3 samples can be held" in str(note)


def test_a_moment_of_rest_between_two_motions_must_be_held(tmp_path):
    """Up, a stop, and on: the 11th of 21 samples stands still, as the first and the last do."""
    text = bodies(
        link(1, "P_AXIS", mass=1, q_min="-9", q_max="9", extra='axis="0 0 1"'),
        link(2, "R_Y", mass=1, com="1 0 0", inertia="0.1 0.1 0.1 0 0 0", q_min="-9", q_max="9"),
    )
    rope = cables({"m": [cable("rope", [(0, "0 0 5"), (1, "0 0 0")], limits=(0, 100))]})
    motion = quintic((0, 0, 0, 0), (1, 0.5, 0, 0), (1, 1, 0, 0), space="operational", letter="y")
    folder = write(
        tmp_path, bodies=text, cables=rope, trajectories=motion, operational_spaces=SPACES
    )
    found = result(import_caspr(folder, samples=21))
    assert found.static_fraction == 0.0
    assert found.dynamic_fraction == pytest.approx(18 / 21)


@pytest.mark.parametrize("seed", range(40))
def test_against_bounded_least_squares(seed):
    """Zero distance of -L' f to the load in the box, or not: two algorithms, one answer."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    jacobian = rng.normal(size=(m, n)) * 10 ** rng.uniform(-3, 3, n)
    lower = rng.uniform(0, 5, m)
    upper = lower + rng.uniform(1, 50, m)
    inside = -jacobian.T @ rng.uniform(lower, upper)
    load = inside if seed % 2 else inside * rng.uniform(1, 4, n)
    scale = np.linalg.norm(jacobian, axis=0)
    other = lsq_linear(-jacobian.T / scale[:, None], load / scale, (lower, upper), tol=1e-14)
    distance = np.linalg.norm(other.fun)
    residual = balance_residual(jacobian, load, Actuation(lower, upper, np.arange(n)))
    assert (residual < 1e-6) == (distance < 1e-5 * max(1, np.abs(load / scale).max()))
    if seed % 2:
        assert residual < 1e-6


def test_rows_without_cables():
    """A coordinate that no cable moves is in balance only without load."""
    jacobian = np.array([[1.0, 0.0]])
    actuation = Actuation(np.array([0.0]), np.array([np.inf]), np.arange(2))
    assert balance_residual(jacobian, np.array([-3.0, 0.0]), actuation) < 1e-9
    assert balance_residual(jacobian, np.array([-3.0, 0.1]), actuation) > 1e-3
    assert balance_residual(jacobian, np.array([3.0, 0.0]), actuation) > 1e-3
    first = Actuation(np.array([0.0]), np.array([np.inf]), np.arange(1))
    assert balance_residual(jacobian, np.array([-3.0, 0.1]), first) < 1e-9
    assert balance_residual(jacobian, np.array([np.nan, 0.0]), first) == np.inf


def test_progress_goes_up(tmp_path):
    seen = []
    import_caspr(
        minimal(tmp_path, trajectories=HOLD), progress=lambda what, done: seen.append((done, what))
    )
    fractions = [done for done, _ in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert any("trajectory m" in what for _, what in seen)
