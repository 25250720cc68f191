"""Sampled references and .traj files."""

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.trajectories import (
    Hold,
    LiveReference,
    SampledReference,
    TrajectoryError,
    quintic_spline,
    read_traj,
    write_traj,
)

SMOOTH = quintic_spline([0.0, 1.0, 2.0], np.random.default_rng(1).normal(size=(3, 2)))

# circle of radius 0.3 in the format of the shipped example, six decimals
CIRCLE = "time_step,0.010000\n" + "\n".join(
    f"t,{0.01 * k:.6f},p,{0.3 * np.cos(w):.6f},{0.3 * np.sin(w):.6f}"
    f",v,{-0.9 * np.sin(w):.6f},{0.9 * np.cos(w):.6f}"
    f",a,{-2.7 * np.cos(w):.6f},{-2.7 * np.sin(w):.6f}"
    for k, w in enumerate(0.03 * np.arange(101))
)


def test_round_trip_keeps_every_sample(tmp_path):
    write_traj(tmp_path / "a.traj", SMOOTH, 0.05)
    again = read_traj(tmp_path / "a.traj", size=2)
    assert again.duration == pytest.approx(2.0)
    times = np.array(again.breaks)
    for got, wanted in zip(again.sample(times), SMOOTH.sample(times), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-13)


def test_interpolation_converges_with_the_step(tmp_path):
    """Halving dt divides the error of y and yd by 2^4 and that of ydd by 2^2."""
    t = np.linspace(0.0, 2.0, 1237)
    errors = []
    for dt in (0.1, 0.05, 0.025):
        write_traj(tmp_path / "a.traj", SMOOTH, dt)
        pairs = zip(read_traj(tmp_path / "a.traj").sample(t), SMOOTH.sample(t), strict=True)
        errors.append([np.abs(a - b).max() for a, b in pairs])
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert np.all(ratios[:, :2] > 11.0)
    assert np.all(ratios[:, 2] > 3.5)


def test_rounding_in_the_file_is_not_amplified(tmp_path):
    """Six decimals: errors stay near the rounding, in the derivatives as well."""
    (tmp_path / "c.traj").write_text(CIRCLE)
    reference = read_traj(tmp_path / "c.traj")
    t = np.linspace(0.0, 1.0, 777)
    w = 3.0 * t[:, None]
    circle = 0.3 * np.hstack([np.cos(w), np.sin(w)])
    tangent = 0.9 * np.hstack([-np.sin(w), np.cos(w)])
    y, yd, ydd = reference.sample(t)
    assert np.abs(y - circle).max() < 1.1e-6
    assert np.abs(yd - tangent).max() < 1.1e-6
    # linear interpolation adds max|y''''| dt^2 / 8
    assert np.abs(ydd + 9.0 * circle).max() < 24.3 * 1e-4 / 8 + 1e-6


def test_calls_agree_with_sample_and_hold_the_ends(tmp_path):
    (tmp_path / "c.traj").write_text(CIRCLE)
    reference = read_traj(tmp_path / "c.traj")
    times = np.array([-1.0, 0.0, 0.005, 0.01, 0.4999, 0.99, 1.0, 1.0 + 1e-9, 7.0])
    sampled = reference.sample(times)
    for k, t in enumerate(times):
        for got, wanted in zip(sampled, reference(t), strict=True):
            np.testing.assert_allclose(got[k], wanted, atol=1e-14)
    for t, row in ((-1.0, 0), (7.0, 100)):
        y, yd, ydd = reference(t)
        np.testing.assert_array_equal(y, reference(0.01 * row)[0])
        assert not yd.any()
        assert not ydd.any()
    assert reference(1.0)[1].any()


def test_calls_give_fresh_arrays(tmp_path):
    (tmp_path / "c.traj").write_text(CIRCLE)
    reference = read_traj(tmp_path / "c.traj")
    for t in (-1.0, 0.3, 2.0):
        kept = [x.copy() for x in reference(t)]
        for x in reference(t):
            x += 1.0
        for a, b in zip(kept, reference(t), strict=True):
            np.testing.assert_array_equal(a, b)


def test_select_takes_coordinates_in_the_order_asked_for(tmp_path):
    (tmp_path / "c.traj").write_text(CIRCLE)
    reference = read_traj(tmp_path / "c.traj")
    for a, b in zip(reference.select([1, 0])(0.123), reference(0.123), strict=True):
        np.testing.assert_array_equal(a, b[::-1])


GOOD = "time_step,0.1\nt,0.0,p,1,2,v,0,0,a,0,0\nt,0.1,p,1,2,v,0,0,a,0,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 lines"),
        ("time_step,0.1\n", "1 lines"),
        (GOOD.replace("time_step", "dt"), "x.traj:1: starts with 'dt,0.1'"),
        (GOOD.replace("time_step,0.1", "time_step,fast"), "x.traj:1: 'fast' is not a number"),
        (GOOD.replace("time_step,0.1", "time_step,-1"), "x.traj:1: time_step is -1"),
        (GOOD.replace("t,0.1,p", "t,0.2,p"), "x.traj:3: time is 0.2 s .expected: 0.1 s"),
        (GOOD.replace("v,0,0,a", "v,0,a", 1), "x.traj:2: 1 values after v .expected: 2"),
        (GOOD.replace("0.1,p,1,2", "0.1,p,1,2,3"), "x.traj:3: 3 values after p"),
        (GOOD.replace("0.1,p,1,2", "0.1,p,1,nan"), "x.traj:3: 'nan' is not a number"),
        (GOOD.replace("p,1,2,v,0,0", "v,0,0,p,1,2", 1), "x.traj:2: .*expected: a line t,"),
        (GOOD.replace("t,0.0,", "t,", 1), "x.traj:2"),
        ("\0" * 20, "x.traj: 1 lines"),
    ],
)
def test_reading_names_file_and_line(tmp_path, text, message):
    (tmp_path / "x.traj").write_text(text)
    with pytest.raises(CardsError, match=message):
        read_traj(tmp_path / "x.traj")


def test_reading_checks_the_size(tmp_path):
    (tmp_path / "x.traj").write_text(GOOD)
    with pytest.raises(CardsError, match=r"x\.traj:2: 2 values after p .expected: 3"):
        read_traj(tmp_path / "x.traj", size=3)


def test_missing_or_binary_files_are_refused(tmp_path):
    with pytest.raises(CardsError, match="no such file"):
        read_traj(tmp_path / "none.traj")
    (tmp_path / "b.traj").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CardsError, match="cannot be read"):
        read_traj(tmp_path / "b.traj")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SampledReference(0.1, [[1.0]], [[1.0]], [[1.0]]), "k >= 2"),
        (lambda: SampledReference(0.1, [[1.0]] * 2, [[1.0]] * 3, [[1.0]] * 2), "samples have"),
        (lambda: SampledReference(0.1, [[np.nan]] * 2, [[1.0]] * 2, [[1.0]] * 2), "not finite"),
        (lambda: SampledReference(0.0, [[1.0]] * 2, [[1.0]] * 2, [[1.0]] * 2), "time step"),
        (lambda: write_traj("x", Hold([1.0], 0.1), 0.2), "time step is 0.2 s"),
        (lambda: write_traj("x", LiveReference(1, [0.0]), 0.2), "duration is inf"),
    ],
)
def test_refuses_bad_arguments(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()
