"""A simulator in a page: moves a robot by its own equation of motion, behind the plugin's ports.

Poses, twists and the work of wrenches come from the reference recursion of the kinematics, so
nothing of the muscle code is used to check the muscle code.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.spatial import rotation_exp
from cards_muscle_plugin.bodies import OneByOne
from cards_muscle_plugin.ports import JointInfo, StepInfo

DT = 1_000_000


class FakeLink:
    def __init__(self, simulator, name, moving):
        self.simulator, self.name, self.moving = simulator, name, moving
        self.twists_read = 0

    def read_pose(self, pose):
        pose[:] = self.simulator.pose(self.name)
        return True

    def read_twist(self, twist):
        assert self.moving, "velocities were not asked for"
        twist[:] = self.simulator.twist(self.name)
        return True

    def add_wrench(self, wrench):
        assert len(wrench) == 6
        self.simulator.applied.append((self.name, np.array(wrench)))


class FakeJoint:
    def __init__(self, simulator, name):
        self.simulator, self.name = simulator, name
        node = next(i for i, n in enumerate(simulator.tree.nodes) if n.name == name)
        self.node = simulator.tree.nodes[node]

    def read(self):
        if not self.simulator.measured:
            return None  # as Gazebo before the first step
        q, qd = self.simulator.q, self.simulator.qd
        return [q[self.node.q]], [qd[self.node.v]]

    def put(self, positions):
        self.simulator.put[self.name] = list(positions)

    def drive(self, efforts):
        assert len(efforts) == self.node.nv
        self.simulator.driven[self.node.v] = efforts[0]


class FakeSimulator:
    """Model, world and physics in one."""

    def __init__(self, robot, *, path=None, file=None, static=False):
        robot = dataclasses.replace(robot, muscles=(), wrap_surfaces=())
        self.robot = robot
        self.tree = robot.tree
        self.dynamics = make_dynamics(robot, "numeric")
        self.path = path or (robot.name,)
        self.file = Path(file) if file else None
        self.static = static
        self.there = True
        self.q = self.tree.neutral()
        self.qd = np.zeros(self.tree.nv)
        self.applied = []
        self.last_applied = []
        self.driven = {}
        self.put = {}
        self.measured = False
        self.paused = False
        self.requests = []
        self.reachable = True
        self.ended = False
        self.time = 0
        self.unknown_links = set()
        self.others = {}  # other models of the world, by their names

    # ModelPort

    def exists(self):
        return self.there

    def link_names(self):
        return [link.name for link in self.robot.links]

    def joints(self):
        return [
            JointInfo(joint.name, joint.kind, joint.parent, joint.child)
            for joint in self.robot.joints
            if joint.kind != "free"
        ]

    def link(self, name, *, moving):
        if name in self.unknown_links or name not in self.link_names():
            return None
        return FakeLink(self, name, moving)

    def neighbour(self, model, link):
        other = self.others.get(model)
        return None if other is None else other.link(link, moving=True)

    def joint(self, name):
        names = {node.name for node in self.tree.nodes}
        return FakeJoint(self, name) if name in names else None

    def bodies(self, links, joints, pulled):
        return OneByOne(links, joints, pulled)

    # WorldPort: requests take effect after the step, as Gazebo's do

    def _request(self, *request):
        if self.reachable:
            self.requests.append(request)
        return self.reachable

    def pause(self, paused):
        return self._request("pause", paused)

    def step(self):
        return self._request("step")

    def rewind(self, paused):
        return self._request("rewind", paused)

    def stop(self):
        return self._request("stop")

    # physics

    def _motion(self):
        return forward_kinematics(self.tree, self.q, self.qd)

    def pose(self, link):
        node, pose = self.tree.link_node[link]
        motion = self._motion()
        out = np.eye(4)
        out[:3, :3] = motion.rotation[node] @ pose.rotation
        out[:3, 3] = motion.point(node, pose.translation)
        return out

    def twist(self, link):
        node, pose = self.tree.link_node[link]
        motion = self._motion()
        linear = motion.point_jacobian(node, pose.translation) @ self.qd
        return np.concatenate([linear, motion.angular_velocity[node]])

    def generalised(self, wrenches):
        """Forces on the coordinates of wrenches on links."""
        motion = self._motion()
        tau = np.zeros(self.tree.nv)
        for link, wrench in wrenches:
            node, pose = self.tree.link_node[link]
            tau += motion.point_jacobian(node, pose.translation).T @ wrench[:3]
            tau += motion.angular_jacobian[node].T @ wrench[3:]
        return tau

    def _advance(self):
        state = self.dynamics.update(self.q, self.qd)
        tau = self.generalised(self.applied) - state.coriolis - state.gravity
        for row, effort in self.driven.items():
            tau[row] += effort
        self.qd = self.qd + DT * 1e-9 * np.linalg.solve(state.mass_matrix, tau)
        self.q = self.tree.integrate(self.q, DT * 1e-9 * self.qd)

    def iterate(self, system, count=1):
        """Do what Gazebo does in one turn of its loop, with a system in the place of the plugin.

        Returns:
            The number of steps among the turns.
        """
        steps = 0
        for _ in range(count):
            paused = self.paused
            dt = 0 if paused else DT
            if not paused:
                self.time += DT
            info = StepInfo(self.time, dt, paused)
            system.before_step(info)
            for name, values in self.put.items():
                node = next(n for n in self.tree.nodes if n.name == name)
                ball = node.kind == "ball"
                self.q[node.q : node.q + node.nq] = rotation_exp(values) if ball else values
                self.qd[node.v : node.v + node.nv] = 0.0
            self.put = {}
            if not paused:
                self._advance()
                for other in self.others.values():
                    other._advance()
                    other.last_applied, other.applied = other.applied, []
                steps += 1
            self.last_applied, self.applied = self.applied, []
            self.driven = {}  # as Gazebo forgets them
            self.measured = True
            system.after_step(info)
            self._obey(system)
        return steps

    def _obey(self, system):
        requests, self.requests = self.requests, []
        for kind, *arguments in requests:
            if kind == "pause":
                self.paused = arguments[0]
            elif kind == "stop":
                self.ended = True
            elif kind == "rewind":
                self.paused = arguments[0]
                self.q, self.qd = self.tree.neutral(), np.zeros(self.tree.nv)
                self.time, self.measured = 0, False
                system.reset(StepInfo(0, 0, self.paused))
            elif kind == "step" and self.paused:
                self.paused = False
                self.iterate(system)
                self.paused = True
