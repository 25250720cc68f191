"""A canonical byte string of everything about a tree that the mathematics depends on."""

from __future__ import annotations

import hashlib

import numpy as np

from cards_core.paths.layout import tree_layout
from cards_core.robot.model import Tree
from cards_core.typing import Array


def fingerprint(tree: Tree) -> bytes:
    """Return bytes that are equal for two robots exactly if their equations are.

    Geometry for drawing, limits, home and tension limits do not count; names of links, muscles
    and frames do, because they name rows of the results.
    """
    robot = tree.robot
    parts: list[bytes] = [_numbers(robot.gravity)]
    for node in tree.nodes:
        parts.append(f"node {node.name} {node.kind} {node.parent}".encode())
        parts += [_numbers(node.placement.matrix), _numbers(node.axis)]
        inertia = node.inertia
        parts += [_numbers(np.array([inertia.mass])), _numbers(inertia.com)]
        parts.append(_numbers(inertia.tensor))
    for link in robot.links:
        index, pose = tree.link_node[link.name]
        parts += [f"link {link.name} {index}".encode(), _numbers(pose.matrix)]
    for muscle in robot.muscles:
        parts.append(f"muscle {muscle.name}".encode())
    parts.append(tree_layout(tree).content())
    for surface in robot.wrap_surfaces:
        parts.append(f"surface {type(surface.geometry).__name__}".encode())
        for value in vars(surface.geometry).values():
            text = isinstance(value, str)
            parts.append(value.encode() if text else _numbers(np.atleast_1d(value)))
    for frame in robot.frames:
        parts += [f"frame {frame.name} {frame.link}".encode(), _numbers(frame.pose.matrix)]
    return b"\n".join(parts)


def robot_hash(tree: Tree) -> str:
    """Return a short hash of `fingerprint`, for logs and for two machines to compare models."""
    return hashlib.sha256(fingerprint(tree)).hexdigest()[:16]


def _numbers(values: Array) -> bytes:
    # + 0.0 turns -0.0 into 0.0, which prints and hashes differently but computes the same
    return (np.asarray(values, dtype="<f8") + 0.0).tobytes()
