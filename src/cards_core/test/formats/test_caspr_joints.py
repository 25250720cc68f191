"""All 18 joint types against rotation and velocity formulas written down independently."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import TWO_CABLES, bodies, link, write

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.caspr import import_caspr
from cards_core.formats.caspr.joints import JOINT_TYPES

c, s = np.cos, np.sin
E = np.eye(3)
AXIS = np.array([0.2, -0.5, 0.7]) / np.linalg.norm([0.2, -0.5, 0.7])
LOCATION = np.array([0.1, -0.2, 0.3])


def rx(t):
    return np.array([[1, 0, 0], [0, c(t), -s(t)], [0, s(t), c(t)]])


def ry(t):
    return np.array([[c(t), 0, s(t)], [0, 1, 0], [-s(t), 0, c(t)]])


def rz(t):
    return np.array([[c(t), -s(t), 0], [s(t), c(t), 0], [0, 0, 1]])


def about_axis(t):
    x, y, z = AXIS
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return c(t) * E + s(t) * k + (1 - c(t)) * np.outer(AXIS, AXIS)


def euler_rates(a, b, g):
    return np.array([[c(b) * c(g), s(g), 0], [-c(b) * s(g), c(g), 0], [s(b), 0, 1]])


def fixed_rates(a, b, g):
    return np.array([[1, 0, -s(b)], [0, c(a), s(a) * c(b)], [0, -s(a), c(a) * c(b)]])


def none(n):
    return np.zeros((3, n))


# type: (r, R, S_angular in child axes, S_linear in parent axes) as functions of CASPR's q
FORMULAS = {
    "R_X": lambda t: (0 * E[0], rx(t), E[:, [0]], none(1)),
    "R_Y": lambda t: (0 * E[0], ry(t), E[:, [1]], none(1)),
    "R_Z": lambda t: (0 * E[0], rz(t), E[:, [2]], none(1)),
    "R_AXIS": lambda t: (0 * E[0], about_axis(t), AXIS[:, None], none(1)),
    "U_XY": lambda a, b: (
        0 * E[0], rx(a) @ ry(b), np.array([[c(b), 0], [0, 1], [s(b), 0]]), none(2),
    ),
    "U_YZ": lambda b, g: (
        0 * E[0], ry(b) @ rz(g), np.array([[s(g), 0], [c(g), 0], [0, 1]]), none(2),
    ),
    "U_XZ": lambda a, g: (
        0 * E[0], rx(a) @ rz(g), np.array([[c(g), 0], [-s(g), 0], [0, 1]]), none(2),
    ),
    "P_X": lambda x: (np.array([x, 0, 0]), E, none(1), E[:, [0]]),
    "P_XY": lambda x, y: (np.array([x, y, 0]), E, none(2), E[:, [0, 1]]),
    "P_XZ": lambda x, z: (np.array([x, 0, z]), E, none(2), E[:, [0, 2]]),
    "P_AXIS": lambda d: (d * AXIS, E, none(1), AXIS[:, None]),
    "T_XYZ": lambda x, y, z: (np.array([x, y, z]), E, none(3), E),
    "PLANAR_XY": lambda x, y, t: (
        np.array([x, y, 0]), rz(t), E[:, [2]] * [0, 0, 1], E[:, [0, 1, 1]] * [1, 1, 0],
    ),
    "PLANAR_XZ": lambda x, z, t: (
        np.array([x, 0, z]), ry(t), E[:, [1]] * [0, 0, 1], E[:, [0, 2, 2]] * [1, 1, 0],
    ),
    "PLANAR_YZ": lambda y, z, t: (
        np.array([0, y, z]), rx(t), E[:, [0]] * [0, 0, 1], E[:, [1, 2, 2]] * [1, 1, 0],
    ),
    "S_EULER_XYZ": lambda a, b, g: (
        0 * E[0], rx(a) @ ry(b) @ rz(g), euler_rates(a, b, g), none(3),
    ),
    "S_FIXED_XYZ": lambda a, b, g: (
        0 * E[0], rz(g) @ ry(b) @ rx(a), fixed_rates(a, b, g), none(3),
    ),
    "SPATIAL_EULER_XYZ": lambda x, y, z, a, b, g: (
        np.array([x, y, z]),
        rx(a) @ ry(b) @ rz(g),
        np.hstack([none(3), euler_rates(a, b, g)]),
        np.hstack([E, none(3)]),
    ),
}  # fmt: skip


def one_joint(folder, name: str, parent_joint: str = "R_Z"):
    """A link on a turning link, so that parent axes are not the world's."""
    n = JOINT_TYPES[name].size
    zeros, low, high = (" ".join([x] * n) for x in ("0.1", "-2", "2"))
    extra = 'axis="0.2 -0.5 0.7"' if name.endswith("AXIS") else ""
    text = bodies(
        link(1, parent_joint),
        link(
            2, name, q=zeros, q_min=low, q_max=high, extra=extra,
            location="0.1 -0.2 0.3", com="0.05 0.1 -0.2", mass=2.5,
            inertia="0.3 0.4 0.5 0.01 -0.02 0.03",
        ),
    )  # fmt: skip
    return import_caspr(write(folder, bodies=text, cables=TWO_CABLES), feasibility=False)


def test_the_table_has_all_types():
    assert len(JOINT_TYPES) == 18
    assert set(JOINT_TYPES) == set(FORMULAS)


@pytest.mark.parametrize("name", JOINT_TYPES)
def test_pose_and_velocity(tmp_path, name):
    model = one_joint(tmp_path, name)
    dynamics = make_dynamics(model.robot, "numeric")
    rng = np.random.default_rng(7)
    child = model.bodies[1].link
    for _ in range(5):
        q = rng.uniform(-1.2, 1.2, model.coordinates.index.size)
        r, rotation, angular, linear = FORMULAS[name](*q[1:])
        parent = rz(q[0])
        state = dynamics.operational(model.from_caspr_q(q), np.zeros(q.size), child)
        assert state.rotation == pytest.approx(parent @ rotation, abs=1e-12)
        assert state.position == pytest.approx(parent @ (LOCATION + r), abs=1e-12)
        # columns of our Jacobian in CASPR's order of the coordinates
        jacobian = np.array(model.to_caspr_q(state.jacobian))
        assert jacobian[:3, 1:] == pytest.approx(parent @ linear, abs=1e-12)
        in_child_axes = (parent @ rotation).T @ jacobian[3:, 1:]
        assert in_child_axes == pytest.approx(angular * np.ones((3, q.size - 1)), abs=1e-12)


@pytest.mark.parametrize("name", JOINT_TYPES)
def test_kinetic_energy(tmp_path, name):
    """The energy qd' M qd / 2 is that of the bodies, from the formulas and the file's numbers."""
    model = one_joint(tmp_path, name)
    dynamics = make_dynamics(model.robot, "numeric")
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.2, 1.2, model.coordinates.index.size)
    qd = rng.normal(size=q.size)
    r, rotation, angular, linear = FORMULAS[name](*q[1:])
    w0 = np.array([0, 0, qd[0]])  # parent, the same in its own axes
    w = rotation.T @ w0 + (angular * np.ones((3, q.size - 1))) @ qd[1:]
    com = np.array([0.05, 0.1, -0.2])
    # velocity of the centre of mass, in parent axes
    v = np.cross(w0, LOCATION + r) + linear @ qd[1:] + rotation @ np.cross(w, com)
    tensor = np.array([[0.3, 0.01, -0.02], [0.01, 0.4, 0.03], [-0.02, 0.03, 0.5]])
    energy = 0.5 * (1.0 * qd[0] ** 2 + 2.5 * v @ v + w @ tensor @ w)
    ours = model.from_caspr_q(qd)
    state = dynamics.update(model.from_caspr_q(q), ours)
    assert 0.5 * ours @ state.mass_matrix @ ours == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("name", JOINT_TYPES)
def test_gravity_along_minus_z(tmp_path, name):
    """G is the gradient of m g z of the centres of mass."""
    model = one_joint(tmp_path, name)
    dynamics = make_dynamics(model.robot, "numeric")
    q = np.random.default_rng(5).uniform(-1.2, 1.2, model.coordinates.index.size)

    def potential(x):
        r, rotation, *_ = FORMULAS[name](*x[1:])
        com = rz(x[0]) @ (LOCATION + r + rotation @ [0.05, 0.1, -0.2])
        return 2.5 * 9.81 * com[2]

    step = 1e-6
    gradient = [
        (potential(q + step * e) - potential(q - step * e)) / (2 * step) for e in np.eye(q.size)
    ]
    gravity = dynamics.update(model.from_caspr_q(q), np.zeros(q.size)).gravity
    assert model.to_caspr_q(gravity) == pytest.approx(np.array(gradient), abs=1e-7)


def test_names_of_a_chain(tmp_path):
    model = one_joint(tmp_path, "SPATIAL_EULER_XYZ")
    assert model.bodies[1].joints == tuple(f"link_2_joint_{x}" for x in "xyzabg")
    assert model.coordinates.labels[1:] == tuple(f"link 2.{x}" for x in "xyzabg")
    massless = [item.name for item in model.robot.links if item.inertia.mass == 0.0]
    assert massless == ["base", *(f"link_2_joint_{x}_link" for x in "xyzab")]
    assert model.coordinates.is_identity


def test_fixed_angles_are_reversed(tmp_path):
    model = one_joint(tmp_path, "S_FIXED_XYZ")
    assert model.bodies[1].joints == ("link_2_joint_g", "link_2_joint_b", "link_2_joint_a")
    q = np.array([9.0, 1.0, 2.0, 3.0])  # parent, a, b, g
    assert model.from_caspr_q(q).tolist() == [9.0, 3.0, 2.0, 1.0]
    assert model.to_caspr_q(model.from_caspr_q(q)).tolist() == q.tolist()
    assert model.coordinates.names[1] == "link_2_joint_a"
    assert not model.coordinates.is_identity


def test_order_of_a_tree(tmp_path):
    """CASPR orders by link number, we depth first: 1, 2, 4 (on 2), 3 (on 1)."""
    text = bodies(
        link(1, "R_X", q="0.1"),
        link(2, "U_XY", q="0.2 0.3", q_min="-1 -1", q_max="1 1", parent=1),
        link(3, "R_Z", q="0.4", parent=1),
        link(4, "R_Y", q="0.5", parent=2),
    )
    model = import_caspr(write(tmp_path, bodies=text, cables=TWO_CABLES), feasibility=False)
    dynamics = make_dynamics(model.robot, "numeric")
    assert dynamics.tree.home.tolist() == [0.1, 0.2, 0.3, 0.5, 0.4]
    assert model.to_caspr_q(dynamics.tree.home).tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize("name", ["S_QUATERNION", "SPATIAL_QUATERNION", "P_Y", "r_x", ""])
def test_unknown_type(tmp_path, name):
    folder = write(tmp_path, bodies=bodies(link(1, name)), cables=TWO_CABLES)
    with pytest.raises(DescriptionError) as info:
        import_caspr(folder)
    assert info.value.line == 6
    assert "robot_bodies.xml" in str(info.value)
    assert "expected" in str(info.value)
