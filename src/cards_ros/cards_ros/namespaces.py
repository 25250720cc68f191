"""ROS namespaces of the robots of a world, the same in every simulator; without rclpy."""

from __future__ import annotations

import re
from collections.abc import Collection

from cards_core.errors import DescriptionError
from cards_core.robot.world import World


def namespace_of(path: tuple[str, ...], known: Collection[str]) -> str:
    """Return the ROS namespace of a model.

    None for a robot that has the name it has in its own file; the name of any other: so
    ``<include><name>left_arm</name>`` gives ``/left_arm/joint_states``.

    Args:
        path: Names of the models from the world down to the model.
        known: Names of the models with muscles in its file. More than one share the file, as in a
            world, and need their names to be told apart.
    """
    if len(path) == 1 and list(known) == [path[0]]:
        return ""
    parts = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in path]
    # ROS allows no digit at the beginning
    return "/".join("_" + part if part[:1].isdigit() else part for part in parts)


def namespaces_in(world: World) -> dict[str, str]:
    """Return the namespaces of the robots of a world, by their names; see `namespace_of`.

    Raises:
        DescriptionError: Two robots would share their topics.
    """
    # models of the world file itself have no file of their own
    inline = [model.name for model in world.driven if model.robot.source == world.source]
    found: dict[str, str] = {}
    for model in world.driven:
        known = inline if model.name in inline else [model.robot.name]
        space = namespace_of((model.name,), known)
        for other, taken in found.items():
            if taken == space:
                raise DescriptionError(
                    f"robots '{other}' and '{model.name}' would have the same topics",
                    source=world.source,
                    element=f"world '{world.name}'",
                    expected="<include> with a <name> of its own for each of them",
                )
        found[model.name] = space
    return found
