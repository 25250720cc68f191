"""A simulator in a page: one rigid plate, integrated as Gazebo's physics does, and its ports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.spatial import hat, quaternion_matrix, rotation_exp
from cards_muscle_plugin.bodies import OneByOne
from cards_muscle_plugin.ports import StepInfo

DT = 1_000_000


class FakeLink:
    def __init__(self, world, name):
        self.world, self.name = world, name

    def read_pose(self, pose):
        if not self.world.known:
            return False
        pose[:] = self.world.pose_of(self.name)
        return True

    def read_twist(self, twist):
        twist[:] = self.world.twist
        return True

    def add_wrench(self, wrench):
        assert self.name == self.world.robot.plate.link
        self.world.wrench += np.array(wrench)

    def move(self, twist):
        assert self.name == self.world.robot.plate.link
        turn = self.world.pose[:3, :3]
        self.world.twist = np.concatenate([turn @ twist[:3], turn @ twist[3:]])
        self.world.moves += 1


class FakeJoint:
    def __init__(self, world, name):
        self.world, self.name = world, name

    def read(self):
        return [self.world.joints[self.name]], [0.0]

    def put(self, positions):
        self.world.joints[self.name] = positions[0] if len(positions) == 1 else positions


class FakeWorld:
    """Model, world and physics in one.

    Args:
        robot: Name of the model.
        base: Pose of the model in the world.
        path: Names of the models from the world down.
    """

    world_name = "test"

    def __init__(self, robot, *, base=None, path=None, gravity=(0.0, 0.0, -9.81)):
        self.robot = read_rod_robot(robot)
        self.base = np.eye(4) if base is None else base
        self.path = path or (self.robot.name,)
        self.file = Path(self.robot.source)
        self.static = False
        self.there = self.known = True
        self.world_gravity = np.array(gravity)
        self.joints = {joint.name: 0.0 for joint in self.robot.description.joints}
        self.wrench = np.zeros(6)
        self.push = np.zeros(6)
        self.requests = []
        self.time = 0
        self.moves = 0
        self.home()

    def home(self):
        self.pose, self.twist = self.base @ self.robot.plate.pose, np.zeros(6)

    # ports

    def bind(self, ecm):
        assert ecm == "ecm"

    def exists(self):
        return self.there

    def gravity(self):
        return tuple(self.world_gravity)

    def link_names(self):
        return [link.name for link in self.robot.description.links]

    def link(self, name, *, moving):
        return FakeLink(self, name) if name in self.link_names() else None

    def joint(self, name):
        return FakeJoint(self, name) if name in self.joints else None

    def bodies(self, links, joints, pulled):
        return OneByOne(links, joints, pulled)

    def pose_of(self, name):
        if name == self.robot.plate.link:
            return self.pose
        joint = next(j for j in self.robot.description.joints if j.child == name)
        return self.base @ joint.parent_to_joint.matrix @ joint.joint_to_child.matrix

    def pause(self, paused):
        self.requests.append(("pause", paused))
        return True

    def step(self):
        return True

    def rewind(self, paused):
        return True

    def stop(self):
        self.requests.append(("stop",))
        return True

    # physics

    def advance(self, dt):
        """Semi-implicit: velocity first, then the place with the new velocity."""
        plate, turn = self.robot.plate, self.pose[:3, :3]
        arm = turn @ plate.com
        inertia = turn @ plate.inertia @ turn.T
        cross, spin = hat(arm), self.twist[3:]
        mass = np.block(
            [
                [plate.mass * np.eye(3), -plate.mass * cross],
                [plate.mass * cross, inertia - plate.mass * cross @ cross],
            ]
        )
        weight = plate.mass * self.world_gravity
        pull = plate.mass * np.cross(spin, np.cross(spin, arm))
        bias = np.concatenate([pull, np.cross(spin, inertia @ spin) + np.cross(arm, pull)])
        force = self.wrench + self.push + np.concatenate([weight, np.cross(arm, weight)]) - bias
        self.twist = self.twist + dt * np.linalg.solve(mass, force)
        self.pose = self.pose.copy()
        self.pose[:3, 3] += dt * self.twist[:3]
        swing = quaternion_matrix(rotation_exp(dt * self.twist[3:]))
        self.pose[:3, :3] = swing @ self.pose[:3, :3]
        self.wrench = np.zeros(6)

    def run(self, host, steps, dt=1e-3):
        """Steps of a `RodHost` and of the physics; returns the plate's places, (steps, 3)."""
        places = []
        for _ in range(steps):
            host.step(self.time * 1e-9, dt)
            self.time += round(dt * 1e9)
            self.advance(dt)
            places.append(self.pose[:3, 3].copy())
        return np.array(places)

    def iterate(self, node, steps=1, *, paused=False):
        """What Gazebo does with the node."""
        for _ in range(steps):
            self.time += 0 if paused else DT
            info = StepInfo(self.time, 0 if paused else DT, paused)
            node.before_step(info)
            if not paused:
                self.advance(DT * 1e-9)
            node.after_step(info)
