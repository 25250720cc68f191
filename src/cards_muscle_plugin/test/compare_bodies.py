"""A Gazebo system for tests: reads its model natively and one by one, and pulls its links.

``COMPARE_FILE`` of the environment, with the name of the model behind it, gets a row per step:
both answers, numbers of links and joints, 1 where all bytes are equal, joint positions and
velocities. ``COMPARE_JOINTS`` has the names of the joints.
A model named ``native`` is pulled natively, others one by one.
"""

import os

import numpy as np

from cards_muscle_plugin.bodies import OneByOne
from cards_muscle_plugin.gazebo import GazeboModel, NativeBodies
from cards_ros.gazebo_bindings import bindings


class Compare:
    def configure(self, entity, _sdf, ecm, _events):
        self.model = GazeboModel(bindings(), entity, ecm)
        assert not self.model.slow, self.model.slow
        self.file = open(f"{os.environ['COMPARE_FILE']}-{self.model.path[0]}", "w")  # noqa: SIM115
        self.forms = None

    def make(self, form):
        model = self.model
        links = [model.link(name, moving=True) for name in model.link_names()]
        joints = [model.joint(name) for name in os.environ["COMPARE_JOINTS"].split()]
        poses, twists = np.tile(np.eye(4), (len(links), 1, 1)), np.zeros((len(links), 6))
        q, qd = np.zeros(len(joints)), np.zeros(len(joints))
        return (poses, twists, q, qd), form(
            list(zip(links, poses, twists, strict=True)),
            [(joint, q[i : i + 1], qd[i : i + 1]) for i, joint in enumerate(joints)],
            list(enumerate(links)),
        )

    def pre_update(self, info, ecm):
        self.model.bind(ecm)
        if self.forms is None:
            native = self.make(lambda *parts: NativeBodies(self.model, *parts))
            self.forms = native, self.make(OneByOne)
        (arrays, native), (_, single) = self.forms
        form = native if self.model.path[0] == "native" else single
        if not info.paused and info.sim_time.total_seconds() > 0.0:
            count = len(arrays[0])
            wrenches = np.random.default_rng(3).uniform(-1.0, 1.0, (count, 6))
            form.pull(wrenches)
            form.pull(0.5 * wrenches)  # wrenches add up

    def post_update(self, info, ecm):
        if info.paused or self.forms is None:
            return
        self.model.bind(ecm)
        (one, native), (two, single) = self.forms
        answers = native.read(), single.read()
        same = all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))
        moves = [f"{x:.17g}" for x in np.concatenate([one[2], one[3]])]
        print(*answers, len(one[0]), len(one[2]), int(same), *moves, file=self.file, flush=True)


def get_system():
    return Compare()
