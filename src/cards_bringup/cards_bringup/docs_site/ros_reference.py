"""Pages about nodes, from their declarations: topics, services, parameters, diagnostics."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any


def ros_pages(top: Path) -> dict[str, str]:
    """Return the pages by their names in the folder of the reference.

    Args:
        top: Top folder of the repository.

    Raises:
        CardsError: rclpy is not installed.
    """
    from cards_core.errors import CardsError

    try:
        tables = _script(top / "docs" / "parameter_tables.py")
    except ModuleNotFoundError as error:
        raise CardsError(
            f"the reference of nodes needs {error.name} (expected: a sourced ROS 2, or a machine "
            "for which there are ROS wheels)"
        ) from None
    return {
        "topics": _topics_page(tables),
        "parameters": _parameters_page(tables),
        "diagnostics": _diagnostics_page(),
    }


def _topics_page(tables: Any) -> str:
    """Return all topics and services of all nodes."""
    out = [
        "# Topics and services\n\nMade from the declarations in `cards_ros.interface`. Names are "
        "relative: a namespace moves a whole robot. Rules for commands, time and lockstep: "
        "[ROS interface](../ros_interface.md).\n"
    ]
    for mark, lines in tables.topic_tables().items():
        title = mark.replace("<", "\\<")
        out.append(f"\n## {title[0].upper()}{title[1:]}\n\n{_moved(lines)}\n")
    return "".join(out)


def _parameters_page(tables: Any) -> str:
    """Return all parameters of all nodes, and the launch arguments."""
    rows = tables.rows()
    out = [
        "# Parameters\n\nMade from what the nodes declare. `live`: may be changed while the node "
        "runs, by `ros2 param set`. `ros2 param describe` says the same.\n"
    ]
    for mark, lines in (rows["ros_interface.md"] | rows["gazebo.md"]).items():
        if mark.startswith("parameters of "):
            out.append(f"\n## {mark.removeprefix('parameters of ')}\n\n{_moved(lines)}\n")
    launch = _moved(rows["bringup.md"]["launch arguments"])
    out.append(f"\n## Launch arguments\n\n{launch}\n")
    return "".join(out)


def _diagnostics_page() -> str:
    """Return the keys of all statuses on ``/diagnostics``."""
    from cards_ros.interface import DIAGNOSTICS

    out = [
        "# Diagnostics\n\nKeys of the statuses on `/diagnostics`, made from the declarations in "
        "`cards_ros.interface`. A status is called `<node>: <aspect>`. What is a warning and what "
        "an error: [ROS interface](../ros_interface.md).\n"
    ]
    for node, aspects in DIAGNOSTICS.items():
        out.append(f"\n## `{node}`\n\n| aspect | key | meaning |\n|---|---|---|\n")
        for aspect, keys in aspects.items():
            rows = keys.items() or [("", "level and message only")]
            out += [
                f"| `{aspect}` | {f'`{key}`' if key else ''} | {meaning} |\n"
                for key, meaning in rows
            ]
    return "".join(out)


def _moved(lines: list[str]) -> str:
    """Return a table whose links work from the folder of the reference."""
    return re.sub(r"\]\((?!#|[a-z]+:)", "](../", "\n".join(lines))


def _script(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
