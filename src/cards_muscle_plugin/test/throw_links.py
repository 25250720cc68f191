"""A Gazebo system for tests: throws links, and writes down how links move, at each step.

Environment: ``THROW_FILE`` (rows of numbers: time, then velocity and place of each link's origin),
``THROW_LINKS`` (``model::link``), ``THROW_BY`` (force on each in the first step).
"""

import os

from cards_ros.gazebo_bindings import bindings

gz = bindings()


class Throw:
    def configure(self, _entity, _sdf, _ecm, _events):
        self.file = open(os.environ["THROW_FILE"], "w")  # noqa: SIM115
        self.links = []

    def find(self, ecm):
        world = gz.sim.World(gz.sim.world_entity(ecm))
        for name in os.environ["THROW_LINKS"].split():
            model, own = name.split("::")
            entity = gz.sim.Model(world.model_by_name(ecm, model)).link_by_name(ecm, own)
            self.links.append(gz.sim.Link(entity))
            self.links[-1].enable_velocity_checks(ecm)

    def pre_update(self, info, ecm):
        if info.paused or self.links:
            return
        self.find(ecm)
        force = [float(x) for x in os.environ["THROW_BY"].split()]
        for i, link in enumerate(self.links):
            link.add_world_force(ecm, gz.math.Vector3d(*force[3 * i : 3 * i + 3]))

    def post_update(self, info, ecm):
        if info.paused:
            return
        row = [info.sim_time.total_seconds()]
        for link in self.links:
            v = link.world_linear_velocity(ecm)
            place = link.world_pose(ecm).pos()
            row += [v.x(), v.y(), v.z(), place.x(), place.y(), place.z()]
        print(*(f"{x:.16g}" for x in row), file=self.file, flush=True)


def get_system():
    return Throw()
