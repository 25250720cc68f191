"""The robots of a demonstration: one, or those of a world, each with its controller and folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_bringup.nodes import node_list
from cards_bringup.nodes.node_list import NodeSpec
from cards_bringup.nodes.plan import Plan
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.loop.verdict import EXIT_CODES
from cards_core.robot import Robot
from cards_ros.namespaces import namespaces_in


@dataclass(frozen=True)
class DemoRobot:
    """A robot of a run.

    Attributes:
        namespace: Of its topics; empty for a robot alone.
        model: Name or path that it is loaded by.
        robot: The robot.
        controller: Its controller, if one runs.
    """

    namespace: str
    model: str
    robot: Robot
    controller: NodeSpec | None

    def folder(self, out: Path) -> Path:
        """Return where its results are, below the run folder."""
        return out / self.namespace


def demo_robots(plan: Plan, listed: str, model: str) -> tuple[DemoRobot, ...]:
    """Return the robots of a run.

    Args:
        plan: What runs.
        listed: Name or path of the node list.
        model: The robot that is put into a world without one.

    Raises:
        CardsError: The world has not the robots that the nodes are for.
    """
    controllers = {node.namespace: node for node in plan.nodes if node.role == "controller"}
    wanted = {node.namespace for node in node_list.load(listed) if node.role == "controller"}
    simulated = plan.values["sim"] == "true"
    # Gazebo reads worlds that we do not
    ours = plan.values["simulator"] == "mujoco" or wanted != {""}
    if simulated and ours and plan.values["world"]:
        world = load_world(plan.values["world"])
        robots = {namespaces_in(world)[one.name]: one.robot for one in world.driven}
        if robots and not wanted <= robots.keys():
            raise CardsError(
                f"world '{world.name}' has robots of its own, {', '.join(map(_called, robots))}, "
                f"and the nodes of {plan.values['robot']} are for "
                f"{', '.join(map(_called, sorted(wanted)))} (expected: a world of objects, or the "
                "node list of these robots)"
            )
        if robots:
            return tuple(
                DemoRobot(space, robot.source or robot.name, robot, controllers.get(space))
                for space, robot in robots.items()
            )
    if wanted - {""}:
        raise CardsError(
            f"{plan.values['robot']} is several robots, and the world has none of them (expected: "
            f"a world with {', '.join(map(_called, sorted(wanted)))})"
        )
    return (DemoRobot("", model, load(model), controllers.get("")),)


def _called(namespace: str) -> str:
    return namespace or "one without a namespace"


def summary_of_all(
    summaries: dict[str, dict[str, Any]], metadata: dict[str, Any], name: str
) -> dict[str, Any]:
    """Return the summary of a run of several robots: what they share, and each under its name.

    A run of several robots has failed if one of them has.

    Args:
        summaries: By the namespaces of the robots.
        metadata: Of the run.
        name: What the robots are called together.
    """
    verdicts = [one["verdict"] for one in summaries.values()]
    worst = max(verdicts, key=lambda verdict: (verdict == "failed", EXIT_CODES[verdict]))
    told = {
        kind: [f"{space}: {text}" for space, one in summaries.items() for text in one[kind]]
        for kind in ("failures", "warnings")
    }
    return {
        "robot": name,
        **metadata,
        "sim_time_s": min(one["sim_time_s"] for one in summaries.values()),
        "verdict": worst,
        **told,
        "robots": summaries,
    }
