"""A Gazebo system for tests: writes down where links of the model it is in are, at each step.

Environment: ``WATCH_FILE`` (rows of numbers: time, then position and quaternion (w, x, y, z) of
each link), ``WATCH_LINKS`` (names), ``WATCH_PUSH`` (optional: link, force, begin and end in
seconds; a force along x in the world).
"""

import os

from cards_ros.gazebo_bindings import bindings

gz = bindings()


class Watch:
    def configure(self, entity, _sdf, ecm, _events):
        world = gz.sim.Model(entity)
        self.file = open(os.environ["WATCH_FILE"], "w")  # noqa: SIM115
        self.model = world
        self.links = {}
        push = os.environ.get("WATCH_PUSH", "").split()
        self.push = (push[0], *(float(x) for x in push[1:])) if push else None

    def link(self, name, ecm):
        if name not in self.links:
            self.links[name] = gz.sim.Link(self.model.link_by_name(ecm, name))
        return self.links[name]

    def pre_update(self, info, ecm):
        if self.push is None or info.paused:
            return
        name, force, begin, end = self.push
        if begin <= info.sim_time.total_seconds() < end:
            link = self.link(name, ecm)
            link.add_world_force(ecm, gz.math.Vector3d(force, 0.0, 0.0))

    def post_update(self, info, ecm):
        if info.paused:
            return
        row = [info.sim_time.total_seconds()]
        for name in os.environ["WATCH_LINKS"].split():
            pose = self.link(name, ecm).world_pose(ecm)
            place, turn = pose.pos(), pose.rot()
            row += [place.x(), place.y(), place.z(), turn.w(), turn.x(), turn.y(), turn.z()]
        print(*(f"{x:.12g}" for x in row), file=self.file, flush=True)


def get_system():
    return Watch()
