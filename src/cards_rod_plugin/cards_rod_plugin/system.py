"""The system that Gazebo loads: ``<module_name>cards_rod_plugin.system</module_name>``.

A thin boundary, the same as that of muscles: exceptions end there, the plate is let go, the world
is paused, and ``/diagnostics`` says why. Instances, one for each robot, share nothing.
"""

from __future__ import annotations

from typing import Any

from cards_muscle_plugin.system import MusclePlugin
from cards_ros.gazebo_bindings import bindings


class RodPlugin(MusclePlugin):
    """Rods of one model."""

    NAME = "cards_rod_plugin"

    def _read(self, model: Any, block: str) -> Any:
        from cards_rod_plugin.hosted_rods import host_rods

        return host_rods(model, block)

    def _make_node(self, context: Any, hosted: Any, model: Any, world: Any) -> Any:
        from cards_rod_plugin.node import RodGazeboNode

        transport = getattr(bindings(), "transport", None)
        requests = None if transport is None else transport.Node()
        return RodGazeboNode(context, hosted, model, world, requests)

    def _make_fault(
        self, context: Any, namespace: str, robot: str, error: Exception, world: Any
    ) -> Any:
        from cards_muscle_plugin.fault_node import FaultNode
        from cards_ros import topics

        return FaultNode(
            context, namespace, robot, error, world, name=topics.ROD_SOLVER, missing="rods"
        )


def get_system() -> RodPlugin:
    """Return a new system; Gazebo calls it once for each plugin element."""
    return RodPlugin()
