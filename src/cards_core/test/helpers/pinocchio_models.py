"""Robots in Pinocchio, as a second opinion on kinematics and dynamics."""

import numpy as np


def pinocchio_model(pin, robot, tree):
    """Build the same tree in Pinocchio; node k becomes joint k + 1."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    for node in tree.nodes:
        kind = {
            "revolute": lambda n=node: pin.JointModelRevoluteUnaligned(n.axis),
            "prismatic": lambda n=node: pin.JointModelPrismaticUnaligned(n.axis),
            "ball": lambda: pin.JointModelSpherical(),
        }[node.kind]()
        placement = pin.SE3(node.placement.rotation, node.placement.translation)
        joint = model.addJoint(node.parent + 1, kind, placement, node.name)
        inertia = pin.Inertia(node.inertia.mass, node.inertia.com, node.inertia.tensor)
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    return model


def to_pinocchio(tree, q):
    """Quaternions are x y z w there."""
    out = np.array(q)
    for node in tree.nodes:
        if node.kind == "ball":
            out[node.q : node.q + 4] = np.roll(q[node.q : node.q + 4], -1)
    return out
