"""Robots that differ from a given one in one thing."""

from dataclasses import replace

import numpy as np


def with_mass(robot, factor):
    """The last link is heavier."""
    link = robot.links[-1]
    heavier = replace(link, inertia=replace(link.inertia, mass=factor * link.inertia.mass))
    return replace(robot, links=(*robot.links[:-1], heavier))


def with_muscle(robot, **changes):
    """The first muscle is another."""
    return replace(robot, muscles=(replace(robot.muscles[0], **changes), *robot.muscles[1:]))


def with_moved_point(robot, distance):
    """The first muscle ends elsewhere."""
    path = robot.muscles[0].path
    point = replace(path[-1], position=path[-1].position + np.array([distance, 0.0, 0.0]))
    return with_muscle(robot, path=(*path[:-1], point))


def with_limits(robot, lower, upper):
    """The last joint has other limits."""
    joint = robot.joints[-1]
    limited = replace(joint, axes=(replace(joint.axes[0], lower=lower, upper=upper),))
    return replace(robot, joints=(*robot.joints[:-1], limited))
