"""The integrator in C: order, variation, invariants along the rod."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cards_core.rods.native_library import NativeRod, rod_library
from cards_core.spatial import hat, quaternion_matrix, rotation_exp, rotation_log

LENGTH = 1.0


def make(circular: bool, seed: int = 1) -> tuple[NativeRod, Any]:
    """A soft rod under distributed loads, and its equations written out independently."""
    rng = np.random.default_rng(seed)
    if circular:
        flex_v, flex_u = np.array([0.2, 0.2, 0.1]), np.array([5.0, 5.0, 7.0])
        u0, v0 = np.zeros(3), np.array([0.0, 0.0, 1.0])
    else:
        flex_v, flex_u = np.array([0.2, 0.15, 0.1]), np.array([5.0, 3.0, 7.0])
        u0, v0 = rng.normal(size=3), np.array([0.1, -0.05, 1.1])
    force, moment = 0.3 * rng.normal(size=3), 0.05 * rng.normal(size=3)
    rod = NativeRod()
    rod.inv_kse[:], rod.inv_kbt[:] = tuple(flex_v), tuple(flex_u)
    rod.u0[:], rod.v0[:] = tuple(u0), tuple(v0)
    rod.force[:], rod.moment[:] = tuple(force), tuple(moment)
    rod.circular = circular

    def rate(_: float, y: Any) -> Any:
        R, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:]
        tangent = R @ (v0 + flex_v * (R.T @ n))
        turn = R @ hat(u0 + flex_u * (R.T @ m))
        return np.concatenate([tangent, turn.ravel(), -force, -np.cross(tangent, n) - moment])

    return rod, rate


def start_state(seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    R = quaternion_matrix(rng.normal(size=4))
    return np.concatenate(
        [rng.normal(size=3), R.ravel(), 0.4 * rng.normal(size=3), 0.3 * rng.normal(size=3)]
    )


def shoot(rod: NativeRod, state: Any, steps: int) -> Any:
    out = state.copy()
    rod_library().rod_shoot(
        ctypes.byref(rod), ctypes.c_double(LENGTH), steps, ctypes.c_void_p(out.ctypes.data)
    )
    return out


def moved(state: Any, step: Any) -> Any:
    out = state.copy()
    out[:3] += step[:3]
    out[3:12] = (quaternion_matrix(rotation_exp(step[3:6])) @ state[3:12].reshape(3, 3)).ravel()
    out[12:] += step[6:]
    return out


def difference(a: Any, b: Any) -> Any:
    turn = rotation_log(a[3:12].reshape(3, 3) @ b[3:12].reshape(3, 3).T)
    return np.concatenate([a[:3] - b[:3], turn, a[12:] - b[12:]])


@pytest.mark.parametrize("circular", [True, False])
def test_convergence_of_order_eight(circular: bool) -> None:
    rod, rate = make(circular)
    state = start_state()
    exact = solve_ivp(rate, (0, LENGTH), state, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    counts = np.array([2, 3, 4, 6])
    errors = [np.abs(shoot(rod, state, int(n)) - exact).max() for n in counts]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert errors[-1] < 1e-8
    assert 7.5 < order < 9.5
    assert np.abs(shoot(rod, state, 24) - exact).max() < 1e-12


@pytest.mark.parametrize("circular", [True, False])
def test_variation_is_the_derivative(circular: bool) -> None:
    rod, _ = make(circular)
    rng = np.random.default_rng(3)
    state, steps, h = start_state(), 16, 1e-6
    seeds = rng.normal(size=(12, 8))
    tangent, end = seeds.copy(), state.copy()
    rod_library().rod_shoot_tangent(
        ctypes.byref(rod),
        ctypes.c_double(LENGTH),
        steps,
        ctypes.c_void_p(end.ctypes.data),
        ctypes.c_void_p(tangent.ctypes.data),
    )
    np.testing.assert_allclose(end, shoot(rod, state, steps), atol=1e-14)
    matrix, other = np.empty((12, 12)), state.copy()
    rod_library().rod_transfer(
        ctypes.byref(rod),
        ctypes.c_double(LENGTH),
        steps,
        ctypes.c_void_p(other.ctypes.data),
        ctypes.c_void_p(matrix.ctypes.data),
    )
    np.testing.assert_allclose(other, end, atol=1e-14)
    np.testing.assert_allclose(matrix @ seeds, tangent, rtol=1e-12, atol=1e-12)
    for lane in range(8):
        ahead = shoot(rod, moved(state, h * seeds[:, lane]), steps)
        back = shoot(rod, moved(state, -h * seeds[:, lane]), steps)
        np.testing.assert_allclose(
            tangent[:, lane], difference(ahead, back) / (2 * h), rtol=1e-7, atol=1e-7
        )


def test_variation_is_symplectic() -> None:
    # Betti's theorem: the work of one variation's wrench on the other's moves, dX1.dW2 - dX2.dW1,
    # is the same at both ends; -m.(phi1 x phi2) since rotations do not commute
    rod, _ = make(circular=False)
    rod.moment[:] = (0.0, 0.0, 0.0)  # dead moments have no potential
    state, end, matrix = start_state(), start_state(), np.empty((12, 12))
    rod_library().rod_transfer(
        ctypes.byref(rod),
        ctypes.c_double(LENGTH),
        20,
        ctypes.c_void_p(end.ctypes.data),
        ctypes.c_void_p(matrix.ctypes.data),
    )

    def form(at: Any) -> Any:
        out = np.zeros((12, 12))
        out[:6, 6:], out[6:, :6] = np.eye(6), -np.eye(6)
        out[3:6, 3:6] = hat(at[15:])
        return out

    np.testing.assert_allclose(matrix.T @ form(end) @ matrix, form(state), atol=1e-10)


def test_circular_formulas_are_a_special_case() -> None:
    rod, _ = make(circular=True)
    state = start_state()
    fast = shoot(rod, state, 30)
    rod.circular = 0
    np.testing.assert_allclose(shoot(rod, state, 30), fast, atol=1e-12)


def test_wrench_is_transported_without_loads() -> None:
    rod, _ = make(circular=False)
    rod.force[:], rod.moment[:] = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    state = start_state()
    end = shoot(rod, state, 30)
    R = end[3:12].reshape(3, 3)
    np.testing.assert_array_equal(end[12:15], state[12:15])
    np.testing.assert_allclose(
        end[15:] + np.cross(end[:3], end[12:15]),
        state[15:] + np.cross(state[:3], state[12:15]),
        atol=1e-12,
    )
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
