"""Muscle relaxation control against a transcription of the published flow chart."""

import numpy as np
import pytest

from cards_core.control.mrc.relaxation import (
    Relaxation,
    RelaxationOptions,
    relax,
    withdraw_all,
    within_bound,
)
from cards_core.errors import ParameterError, ShapeError

PLUS, MINUS, MOST, ANGLE, LEAST = 3e-5, 3e-5, 2e-3, 0.1, 30.0
MUSCLES, JOINTS = 10, 5


class FlowChart:
    """The published procedure, statement by statement, with lists instead of arrays."""

    def __init__(self):
        self.dl = [0.0] * MUSCLES
        self.before = None
        self.theta_static = None

    def __call__(self, l_target, tension, necessary, theta):
        static = self.before is not None and all(
            abs(a - b) <= 1e-7 for a, b in zip(l_target, self.before, strict=True)
        )
        self.before = list(l_target)
        ranking = [i for _, i in sorted((t, i) for i, t in enumerate(necessary))]
        if not static:
            self.theta_static = None
            # ascending with ties by index, descending with ties by index
            falling = [i for _, i in sorted((-t, i) for i, t in enumerate(necessary))]
            for i in falling:
                if self.dl[i] > 0.0:
                    self.dl[i] -= MINUS
                    self.dl[i] = max(self.dl[i], 0.0)
                    return self.dl
            return self.dl
        if self.theta_static is None:
            self.theta_static = list(theta)
        change = sum((a - b) ** 2 for a, b in zip(theta, self.theta_static, strict=True)) ** 0.5
        if change >= ANGLE:
            return self.dl
        for i in ranking:
            if tension[i] > LEAST and self.dl[i] + PLUS < MOST:
                self.dl[i] += PLUS
                return self.dl
        return self.dl


def test_random_steps_as_in_the_flow_chart():
    rng = np.random.default_rng(5)
    chart, state, options = FlowChart(), Relaxation.none(MUSCLES), RelaxationOptions()
    lengths, theta = np.full(MUSCLES, 0.2), np.zeros(JOINTS)
    left, moving, released, stopped = 0, False, 0, 0
    for step in range(100_000):
        if left == 0:
            left, moving = int(rng.integers(1, 900)), not moving
            # every third necessary tension is the least one, so that ties are common
            necessary = np.where(
                rng.random(MUSCLES) < 0.4, LEAST, rng.uniform(LEAST, 200.0, MUSCLES)
            )
        left -= 1
        if moving:
            lengths = lengths + rng.normal(0.0, 1e-4, MUSCLES)
        theta = theta + rng.normal(0.0, 2e-3, JOINTS)
        tension = rng.uniform(0.0, 90.0, MUSCLES)
        tension[rng.integers(MUSCLES)] = LEAST
        expected = chart(lengths, tension, necessary, theta)
        state = relax(state, lengths, tension, necessary, theta, options=options)
        assert state.dl.tolist() == expected, step
        assert state.moving == (chart.theta_static is None)
        released += state.chosen >= 0 and not state.moving
        stopped += state.stopped
    assert released > 5_000
    assert stopped > 5_000


def still(options=None, necessary=None, steps=1, tension=100.0, muscles=3):
    """Return the states of a robot that stays where it is."""
    options = options or RelaxationOptions()
    necessary = np.full(muscles, LEAST) if necessary is None else necessary
    state, out = Relaxation.none(muscles), []
    for _ in range(steps + 1):  # the first has nothing to compare with
        state = relax(
            state,
            np.ones(muscles),
            np.full(muscles, tension),
            necessary,
            np.zeros(2),
            options=options,
        )
        out.append(state)
    return out[1:]


def test_a_muscle_ends_after_66_steps_at_one_step_below_the_largest_length():
    states = still(steps=300)
    assert [s.chosen for s in states[:66]] == [0] * 66
    assert [s.chosen for s in states[66:132]] == [1] * 66
    assert states[-1].dl == pytest.approx(np.full(3, 66 * PLUS), abs=1e-12)
    assert states[-1].chosen == -1
    # 3.75 mm/s in all, as long as a muscle is left
    assert states[99].dl.sum() / (100 * 0.008) == pytest.approx(3.75e-3)


def test_the_least_necessary_muscle_is_released_first():
    order = [s.chosen for s in still(necessary=np.array([50.0, 40.0, 60.0]), steps=198)]
    assert order == [1] * 66 + [0] * 66 + [2] * 66


def test_equal_need_is_decided_by_tension_if_wanted():
    options = RelaxationOptions(ties="tension")
    tensions = np.array([40.0, 80.0, 60.0])
    state, need = Relaxation.none(3), np.full(3, LEAST)
    chosen = []
    for _ in range(200):
        state = relax(state, np.ones(3), tensions, need, np.zeros(1), options=options)
        if state.chosen >= 0:
            chosen.append(state.chosen)
    assert chosen == [1] * 66 + [2] * 66 + [0] * 66


@pytest.mark.parametrize("tension", [29.0, 30.0])
def test_a_slack_muscle_is_not_released(tension):
    assert not still(tension=tension, steps=20)[-1].dl.any()


def test_it_stops_where_the_robot_moves_and_goes_on_below_the_threshold():
    options = RelaxationOptions(resume=0.9)
    state, need, pull = Relaxation.none(2), np.full(2, LEAST), np.full(2, 90.0)
    seen = []
    for angle in (0.0, 0.0, 0.05, 0.1, 0.095, 0.0899, 0.095):
        state = relax(state, np.ones(2), pull, need, np.array([angle]), options=options)
        seen.append((state.stopped, round(state.dl.sum() / PLUS)))
    assert seen[1:] == [(False, 1), (False, 2), (True, 2), (True, 2), (False, 3), (False, 4)]


def test_the_pose_to_keep_is_that_after_the_hold_time():
    options = RelaxationOptions(hold=0.08)
    state, need, pull = Relaxation.none(2), np.full(2, LEAST), np.full(2, 90.0)
    for i in range(40):
        state = relax(
            state, np.ones(2), pull, need, np.array([0.01 * min(i, 11)]), options=options
        )
        assert (state.dl.sum() > 0.0) == (i > 10)
    assert state.rest == pytest.approx([0.11])
    assert not state.moving


def test_motion_takes_it_back_the_most_needed_first():
    state = Relaxation(np.array([1e-4, 1e-4, 0.0]), targets=np.zeros(3))
    chosen = []
    for i in range(8):
        state = relax(
            state,
            np.full(3, 0.01 * (i + 1)),
            np.full(3, 90.0),
            np.array([40.0, 50.0, 60.0]),
            np.zeros(1),
            options=RelaxationOptions(),
        )
        chosen.append(state.chosen)
    assert chosen == [1, 1, 1, 1, 0, 0, 0, 0]
    assert state.dl.tolist() == [0.0, 0.0, 0.0]


def test_switching_off_takes_all_back_at_the_published_speed():
    state = Relaxation(np.array([1e-4, 2e-3, 0.0]), stopped=True, moving=False, rest=np.zeros(1))
    largest = 0.0
    for _ in range(67):
        after = withdraw_all(state, RelaxationOptions())
        largest = max(largest, float(np.abs(after.dl - state.dl).max()))
        state = after
    assert not state.dl.any()
    assert largest <= MINUS * (1 + 1e-12)
    assert not state.stopped
    assert state.rest is None


@pytest.mark.parametrize("bad", ["targets", "tensions", "necessary", "q"])
def test_nothing_is_released_on_numbers_that_are_none(bad):
    given = {
        "targets": np.ones(2),
        "tensions": np.full(2, 90.0),
        "necessary": np.full(2, 30.0),
        "q": np.zeros(2),
    }
    given[bad] = given[bad].copy()
    given[bad][1] = np.nan
    with pytest.raises(ShapeError, match="finite"):
        relax(Relaxation.none(2), **given, options=RelaxationOptions())
    given[bad] = np.ones(3)
    if bad != "q":
        with pytest.raises(ShapeError, match=bad):
            relax(Relaxation.none(2), **given, options=RelaxationOptions())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dl_plus", 0.0),
        ("dl_max", np.nan),
        ("resume", 1.1),
        ("hold", -0.1),
        ("ties", "alphabet"),
        ("period", np.inf),
    ],
)
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(ParameterError, match=name):
        RelaxationOptions(**{name: value})


@pytest.mark.parametrize(
    "name", ["dl_plus", "dl_minus", "dl_max", "dtheta_max", "tension_min", "still", "period"]
)
def test_numbers_of_the_relaxation_are_positive_and_finite(name):
    for bad in (0.0, -1e-3, np.nan, np.inf):
        with pytest.raises(ParameterError, match=f"{name} is .*expected a finite number > 0"):
            RelaxationOptions(**{name: bad})


def test_shares_times_and_lengths_are_bounded():
    for given, words in (
        ({"resume": 0.0}, "resume is 0.0"),
        ({"resume": 1.0001}, "resume is 1.0001"),
        ({"resume": np.nan}, "resume"),
        ({"hold": -1e-9}, "hold is"),
        ({"hold": np.inf}, "hold is inf"),
        ({"dl_max": 3e-5}, "dl_max is 3e-05 m; expected more than dl_plus 3e-05"),
        ({"ties": "name"}, "ties is 'name'; expected one of: index, tension"),
    ):
        with pytest.raises(ParameterError, match=words):
            RelaxationOptions(**given)
    options = RelaxationOptions(resume=1.0, hold=0.0, dl_max=np.nextafter(3e-5, 1.0))
    assert (options.resume, options.hold) == (1.0, 0.0)
    published = RelaxationOptions()
    assert (published.dl_plus, published.dl_minus, published.dl_max) == (PLUS, MINUS, MOST)
    assert (published.dtheta_max, published.tension_min, published.period) == (ANGLE, LEAST, 8e-3)
    assert (published.resume, published.hold, published.ties) == (1.0, 0.0, "index")
    assert published.still == 1e-7


@pytest.mark.parametrize(("hold", "periods"), [(0.0, 0), (0.1, 12), (0.004, 0), (0.0121, 2)])
def test_nothing_is_released_before_targets_were_still_for_a_while(hold, periods):
    """So many whole periods, the nearest number of them."""
    states = still(RelaxationOptions(hold=hold), steps=20)
    assert [s.chosen for s in states] == [-1] * periods + [0] * (20 - periods)
    assert not any(s.moving for s in states)
    assert [s.still for s in states] == list(range(1, 21))
    assert all((s.rest is None) == (k < periods) for k, s in enumerate(states))


def test_targets_that_change_by_just_the_allowed_length_are_still():
    options = RelaxationOptions(still=0.25)

    def next_of(change):
        state = Relaxation.none(2)
        for targets in (np.zeros(2), np.array([0.0, change])):
            state = relax(
                state, targets, np.full(2, 99.0), np.ones(2), np.zeros(1), options=options
            )
        return state

    assert not next_of(0.25).moving
    assert not next_of(-0.25).moving
    assert next_of(np.nextafter(0.25, 1.0)).moving
    assert next_of(-0.2501).moving


def test_a_robot_that_moved_by_just_the_allowed_angle_has_stopped_the_release():
    options = RelaxationOptions(dtheta_max=0.5, resume=0.5)
    state = still(options, steps=1)[0]

    def at(state, angle):
        return relax(
            state,
            np.ones(3),
            np.full(3, 99.0),
            np.full(3, LEAST),
            np.array([0.0, angle]),
            options=options,
        )

    assert at(state, np.nextafter(0.5, 0.0)).chosen == 0
    stopped = at(state, 0.5)
    assert (stopped.stopped, stopped.chosen) == (True, -1)
    assert np.array_equal(stopped.dl, state.dl)
    # it goes on only below half of it
    assert at(stopped, 0.25).stopped
    again = at(stopped, np.nextafter(0.25, 0.0))
    assert (again.stopped, again.chosen) == (False, 0)
    assert at(stopped, -0.5).stopped


def test_what_is_above_a_bound_that_was_lowered_comes_back_by_steps():
    options = RelaxationOptions(dl_max=1e-3, dl_minus=2e-4)
    state = Relaxation(np.array([1.5e-3, 1.1e-3, 1e-3, 5e-4]))
    less = within_bound(state, options)
    assert less.dl == pytest.approx([1.3e-3, 1e-3, 1e-3, 5e-4], abs=1e-15)
    inside = Relaxation(np.array([1e-3, 5e-4]))
    assert within_bound(inside, options) is inside
    assert withdraw_all(state, options).dl == pytest.approx([1.3e-3, 9e-4, 8e-4, 3e-4], abs=1e-15)
    assert withdraw_all(Relaxation(np.array([1e-4, 0.0])), options).dl.tolist() == [0.0, 0.0]


def test_in_motion_the_muscle_that_is_needed_most_gives_back_first():
    options = RelaxationOptions(ties="tension", dl_minus=3e-5)
    state = Relaxation(np.array([1e-5, 1e-4, 0.0, 1e-4]))
    tensions, need = np.array([10.0, 60.0, 99.0, 50.0]), np.array([50.0, 50.0, 90.0, 50.0])
    chosen = []
    for k in range(12):
        targets = np.full(4, 1.0 + k)
        state = relax(state, targets, tensions, need, np.zeros(1), options=options)
        assert state.moving
        chosen.append(state.chosen)
    # of equal need the one that pulls less; never one that has nothing to give
    assert chosen == [0] + [3] * 4 + [1] * 4 + [-1] * 3
    assert not state.dl.any()
