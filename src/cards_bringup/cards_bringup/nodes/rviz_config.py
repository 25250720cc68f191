"""The RViz configuration of one robot: that of its kind, with a view that shows all of it.

``config/muscles.rviz`` and ``config/rods.rviz`` have the displays. Topics get the namespace of the
robot, and the camera looks at the middle of the robot at home, from as far as its size asks for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cards_core.codegen.cache import cache_folder
from cards_core.errors import CardsError
from cards_core.files import write_atomically
from cards_core.shared_files import shared_folder
from cards_core.typing import Array

_DISTANCE = 1.8
"""Distance of the camera from the middle of the robot, in diagonals of its box."""


def rviz_config(model: str, *, rods: bool, namespace: str = "") -> Path:
    """Write the configuration of a robot into the cache folder; return the file.

    Args:
        model: The robot, a name or the path of its SDF file.
        rods: Whether it is a robot of rods.
        namespace: Of its topics.

    Raises:
        CardsError: The robot cannot be loaded, or the file not be written.
    """
    kind = "rods" if rods else "muscles"
    template = shared_folder() / "config" / f"{kind}.rviz"
    name, points = _rod_points(model) if rods else _muscle_points(model)
    text = _for_robot(template.read_text(encoding="utf-8"), points, namespace)
    file = cache_folder() / "rviz" / f"{'_'.join(filter(None, (namespace, name)))}.rviz"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)  # another launch may read it
    except OSError as error:
        raise CardsError(f"{file}: cannot be written: {error.strerror}") from error
    return file


def _for_robot(template: str, points: Array, namespace: str) -> str:
    """Return a configuration with a view of points, shape (k, 3), [m]."""
    document: dict[str, Any] = yaml.safe_load(template)
    manager = document["Visualization Manager"]
    lower, upper = points.min(axis=0), points.max(axis=0)
    size = float(np.linalg.norm(upper - lower)) or 1.0
    view = manager["Views"]["Current"]
    view["Distance"] = round(_DISTANCE * size, 3)
    middle = (0.5 * (lower + upper)).round(3).tolist()
    view["Focal Point"] = dict(zip("XYZ", middle, strict=True))
    for display in manager["Displays"]:
        for key in ("Topic", "Description Topic"):
            if namespace and key in display:
                display[key]["Value"] = f"/{namespace}{display[key]['Value']}"
    return yaml.safe_dump(document, sort_keys=False)


def _muscle_points(model: str) -> tuple[str, Array]:
    from cards_core.formats import load
    from cards_viz.muscles.scene import Scene

    robot = load(model)
    scene = Scene(robot, backend="numeric")
    return robot.name, np.array([scene.lower, scene.upper])


def _rod_points(model: str) -> tuple[str, Array]:
    from cards_core.rods.robots.reader import read_rod_robot
    from cards_core.rods.robots.robot import rod_starts

    robot = read_rod_robot(model)
    starts = rod_starts(robot, robot.home_q)[:, :3, 3]
    pose = robot.home_pose
    tips = np.array([limb.tip.joint_pose[:3, 3] for limb in robot.limbs])
    return robot.name, np.concatenate([starts, tips @ pose[:3, :3].T + pose[:3, 3]])
