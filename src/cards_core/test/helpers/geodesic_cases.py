"""Robots, reference lengths and moment arms for the tests of geodesic paths."""

from __future__ import annotations

import math

import numpy as np

from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Link,
    Muscle,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, axis_rotation

# (start, end, obstacles (kind, size, translation, body-fixed xyz angles, contact hint), length) as
# found by Scholz2015GeometryPath of OpenSim 4.6; a torus is a ring unless its hint is outside
OPENSIM = [
    (
        [-0.127, -0.065, -0.142],
        [0.299, 0.002, 0.062],
        [
            (
                "ellipsoid",
                [0.113, 0.14, 0.128],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [0.0395, -0.0583, -0.1074],
            )
        ],
        0.486209107731,
    ),
    (
        [0.218, 0.126, -0.15],
        [-0.413, -0.144, 0.191],
        [
            (
                "ellipsoid",
                [0.072, 0.066, 0.111],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [-0.0328, 0.0563, -0.0282],
            )
        ],
        0.76983098605,
    ),
    (
        [-0.162, -0.134, 0.176],
        [0.156, 0.301, -0.286],
        [
            (
                "ellipsoid",
                [0.1, 0.075, 0.051],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [-0.0553, 0.0575, 0.0166],
            )
        ],
        0.713228842316,
    ),
    (
        [-0.146, 0.009, 0.162],
        [0.305, 0.013, -0.281],
        [
            (
                "ellipsoid",
                [0.077, 0.138, 0.101],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [0.0408, 0.0164, 0.0848],
            )
        ],
        0.654102017679,
    ),
    (
        [0.027, -0.251, -0.122],
        [0.064, 0.367, -0.013],
        [
            (
                "ellipsoid",
                [0.111, 0.114, 0.118],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [0.058, 0.0111, -0.0999],
            )
        ],
        0.631293707055,
    ),
    (
        [0.022, 0.298, -0.11],
        [0.051, -0.123, 0.047],
        [
            (
                "ellipsoid",
                [0.147, 0.116, 0.093],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [0.0728, 0.0149, 0.0799],
            )
        ],
        0.492740086779,
    ),
    (
        [-0.011, -0.168, -0.132],
        [0.169, 0.149, 0.253],
        [
            (
                "ellipsoid",
                [0.124, 0.108, 0.093],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [0.0783, -0.0791, 0.0235],
            )
        ],
        0.536323155126,
    ),
    (
        [-0.117, 0.216, -0.223],
        [0.054, -0.391, 0.296],
        [
            (
                "ellipsoid",
                [0.142, 0.134, 0.061],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
                [-0.0562, -0.1099, -0.0252],
            )
        ],
        0.826973597813,
    ),
    (
        [-0.063, -0.088, -0.3],
        [-0.135, -0.036, 0.263],
        [("torus", [0.124, 0.045], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.068, -0.0404, 0.0032])],
        0.575325843113,
    ),
    (
        [-0.067, 0.036, -0.3],
        [-0.035, 0.135, 0.288],
        [("torus", [0.083, 0.044], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.02, 0.0339, 0.0052])],
        0.609655878617,
    ),
    (
        [0.032, 0.022, -0.3],
        [-0.312, 0.215, 0.108],
        [("torus", [0.118, 0.052], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.0634, 0.0517, 0.0374])],
        0.660317029595,
    ),
    (
        [0.071, -0.09, -0.3],
        [-0.422, 0.204, 0.123],
        [("torus", [0.136, 0.058], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.0962, 0.033, 0.0468])],
        0.781424802971,
    ),
    (
        [0.015, 0.028, -0.3],
        [-0.243, -0.411, 0.232],
        [("torus", [0.142, 0.028], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.0621, -0.1042, 0.0189])],
        0.768984599974,
    ),
    (
        [0.061, -0.035, -0.3],
        [-0.25, -0.222, 0.279],
        [("torus", [0.124, 0.053], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.0455, -0.0632, 0.026])],
        0.70646488529,
    ),
    (
        [-0.3, 0.096, -0.029],
        [0.3, 0.089, 0.044],
        [("torus", [0.091, 0.021], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.0184, 0.1004, 0.0179])],
        0.605184825413,
    ),
    (
        [-0.3, 0.082, 0.016],
        [0.3, 0.057, -0.012],
        [("torus", [0.107, 0.03], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0058, 0.1368, -0.0016])],
        0.616721978639,
    ),
    (
        [-0.3, 0.108, -0.012],
        [0.3, 0.076, 0.004],
        [("torus", [0.089, 0.046], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0099, 0.1196, -0.034])],
        0.60685901526,
    ),
    (
        [-0.3, 0.073, -0.004],
        [0.3, 0.056, 0.025],
        [("torus", [0.095, 0.03], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0054, 0.123, -0.0104])],
        0.614125224881,
    ),
    (
        [-0.448, -0.012, -0.008],
        [0.445, 0.056, 0.01],
        [
            ("sphere", 0.086, [-0.15, -0.026, 0.034], [0.0, 0.0, 0.0], [-0.009, 0.0674, -0.0527]),
            (
                "ellipsoid",
                [0.069, 0.053, 0.076],
                [0.141, 0.015, 0.008],
                [0.0, 0.0, 0.0],
                [-0.0016, 0.0519, -0.0151],
            ),
        ],
        0.900084389321,
    ),
    (
        [-0.447, 0.026, -0.008],
        [0.444, 0.022, 0.045],
        [
            ("sphere", 0.082, [-0.15, 0.031, -0.011], [0.0, 0.0, 0.0], [-0.0131, -0.0773, 0.024]),
            (
                "cylinder",
                0.092,
                [0.114, 0.031, 0.019],
                [0.222, 0.0, 0.0],
                [0.0101, -0.0914, 0.0188],
            ),
        ],
        0.91354753288,
    ),
    (
        [-0.491, 0.021, 0.044],
        [0.479, -0.008, -0.026],
        [
            (
                "ellipsoid",
                [0.073, 0.053, 0.1],
                [-0.175, -0.022, 0.026],
                [0.0, 0.0, 0.0],
                [-0.0139, -0.052, -0.0009],
            ),
            (
                "cylinder",
                0.07,
                [0.155, 0.011, 0.039],
                [-0.218, 0.0, 0.0],
                [0.0083, -0.0695, -0.0507],
            ),
        ],
        0.993032717338,
    ),
    (
        [-0.394, 0.038, 0.002],
        [0.399, 0.032, -0.058],
        [
            (
                "ellipsoid",
                [0.076, 0.064, 0.076],
                [-0.16, 0.006, -0.004],
                [0.0, 0.0, 0.0],
                [-0.0088, 0.059, -0.0281],
            ),
            ("sphere", 0.09, [0.149, 0.004, -0.002], [0.0, 0.0, 0.0], [0.0018, 0.0621, -0.0652]),
        ],
        0.801611983997,
    ),
    (
        [-0.419, 0.026, -0.036],
        [0.422, 0.044, 0.014],
        [
            ("sphere", 0.098, [-0.154, 0.004, 0.02], [0.0, 0.0, 0.0], [-0.007, 0.0655, -0.0726]),
            ("sphere", 0.09, [0.134, 0.004, 0.008], [0.0, 0.0, 0.0], [0.0085, 0.08, -0.0403]),
        ],
        0.852867405379,
    ),
    (
        [-0.472, -0.014, 0.011],
        [0.426, -0.002, 0.017],
        [
            (
                "sphere",
                0.089,
                [-0.168, -0.001, -0.034],
                [0.0, 0.0, 0.0],
                [-0.0068, 0.0047, 0.0886],
            ),
            (
                "ellipsoid",
                [0.093, 0.079, 0.078],
                [0.128, -0.036, -0.001],
                [0.0, 0.0, 0.0],
                [0.0059, 0.0553, 0.0555],
            ),
        ],
        0.905300051644,
    ),
]


def geometry(kind, size):
    match kind:
        case "ellipsoid":
            return Ellipsoid(np.array(size))
        case "torus":
            return Torus(*size)
        case "sphere":
            return Sphere(size)
    return Cylinder(size, math.inf)


def path_robot(p, wraps, q, names=("body",)):
    """Robot of one muscle from p in the world over wraps to q on the link `body`.

    wraps: (geometry, pose, options); options of Wrap, and ``link`` (default world).
    """
    return paths_robot([(p, wraps, q)], names)


def paths_robot(paths, names=("body",)):
    surfaces, muscles = [], []
    for number, (p, wraps, q) in enumerate(paths):
        elements = [ViaPoint("world", np.array(p, dtype=float))]
        for k, (shape, pose, options) in enumerate(wraps):
            rest = dict(options)
            name = f"s{number}_{k}"
            surfaces.append(WrapSurface(name, rest.pop("link", "world"), shape, pose))
            elements.append(Wrap(name, **rest))
        elements.append(ViaPoint("body", np.array(q, dtype=float)))
        muscles.append(Muscle(f"m{number}", tuple(elements)))
    links = tuple(Link(name) for name in names)
    return Robot("r", links, (), tuple(muscles), wrap_surfaces=tuple(surfaces))


def oracle_robot(case):
    p, q, obstacles, _ = case
    wraps = []
    for kind, size, translation, angles, hint in obstacles:
        options = {}
        if kind == "torus":
            ring = math.hypot(hint[0], hint[1]) < size[0]
            options = {"inside": True} if ring else {"side": np.array([0.0, 0.3, 0.0])}
        wraps.append((geometry(kind, size), Pose.from_xyz_rpy(translation, angles), options))
    return path_robot(p, wraps, q)


def pose_matrix(rotation_vector=(0.0, 0.0, 0.0), translation=(0.0, 0.0, 0.0)):
    """Pose of the link `body`, shape (1, 4, 4)."""
    vector = np.array(rotation_vector, dtype=float)
    angle = float(np.linalg.norm(vector))
    out = np.eye(4)
    if angle > 0.0:
        out[:3, :3] = axis_rotation(vector / angle, angle)
    out[:3, 3] = translation
    return out[None]


def lengths_and_arms(robot, rows, poses):
    """Lengths, shape (m,), and their derivatives, shape (m, 6).

    With respect to the velocity of `body`'s origin and its angular velocity; contact points are
    taken as fixed to their links.
    """
    pose, k = poses[0], 0
    lengths, arms = [], []
    for muscle in robot.muscles:
        points, moving, length = [], [], 0.0
        for item in muscle.path:
            if isinstance(item, ViaPoint):
                on_body, local = item.link == "body", [item.position]
            else:
                on_body = robot.wrap_surface(item.surface).link == "body"
                local = [rows[k, :3], rows[k, 3:6]]
                length += rows[k, 6]
                k += 1
            for x in local:
                points.append(pose[:3, :3] @ x + pose[:3, 3] if on_body else x)
                moving.append(on_body)
        arm = np.zeros(6)
        for i in range(0, len(points), 2):
            delta = points[i + 1] - points[i]
            distance = float(np.linalg.norm(delta))
            length += distance
            u = delta / distance
            for end, sign in ((i, -1.0), (i + 1, 1.0)):
                if moving[end]:
                    arm += sign * np.concatenate([u, np.cross(points[end] - pose[:3, 3], u)])
        lengths.append(length)
        arms.append(arm)
    return np.array(lengths), np.array(arms)


def twist_of(motion, time):
    """Velocity and angular velocity of the link ``motion(time)[0]``, by differences."""
    h = 1e-6
    before, now, after = (motion(time + d)[0] for d in (-h, 0.0, h))
    rate = (after - before) / (2 * h)
    spin = rate[:3, :3] @ now[:3, :3].T
    return np.array([*rate[:3, 3], spin[2, 1], spin[0, 2], spin[1, 0]])
