"""A layout of Foxglove (or Lichtblick): the robot in 3D, plots beside it, diagnostics below.

A JSON file with the configuration of each panel by its name, ``Kind!id``, and a tree of splits.
"""

from __future__ import annotations

import json
from typing import Any

from cards_bringup.layouts.content import Content, Curve, Plot

_SCENE = "3D!scene"
_HEALTH = "DiagnosticSummary!health"
_STATE = "SourceInfo!topics"


def foxglove_layout(content: Content) -> str:
    """Return the file's text."""
    panels: dict[str, Any] = {_SCENE: _scene(content)}
    plots = []
    for number, plot in enumerate(content.plots):
        name = f"Plot!plot{number}"
        panels[name] = _plot(plot)
        plots.append(name)
    panels[_HEALTH] = {"topicToRender": "/diagnostics", "minLevel": 0, "pinnedIds": []}
    panels[_STATE] = {}
    left = _split("column", _SCENE, _split("row", _HEALTH, _STATE, 50), 75)
    document = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": _split("row", left, _stack(plots), 55),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _scene(content: Content) -> dict[str, Any]:
    layers: dict[str, Any] = {
        "grid": {"layerId": "foxglove.Grid", "instanceId": "grid", "visible": True, "size": 4}
    }
    if content.description:
        layers["robot"] = {
            "layerId": "foxglove.Urdf",
            "instanceId": "robot",
            "sourceType": "topic",
            "topic": content.description,
            "visible": True,
        }
    return {
        "followMode": "follow-none",
        "fixedFrame": "world",
        "topics": {topic: {"visible": True} for topic in content.drawn},
        "layers": layers,
    }


def _plot(plot: Plot) -> dict[str, Any]:
    return {
        "title": plot.title,
        "paths": [
            {
                "value": _path(curve),
                "label": curve.name or curve.field.rpartition(".")[2],
                "enabled": True,
                "timestampMethod": "headerStamp",
            }
            for curve in plot.curves
        ],
        "xAxisVal": "timestamp",
        "isSynced": True,
        "showLegend": True,
        "legendDisplay": "floating",
        "followingViewWidth": 10,
    }


def _path(curve: Curve) -> str:
    """Return a curve in Foxglove's syntax of message paths."""
    return f"{curve.topic}.{curve.field}" + (f"[{curve.index}]" if curve.name else "")


def _stack(names: list[str]) -> Any:
    """Return the tree of panels above each other, all of the same height."""
    if len(names) == 1:
        return names[0]
    return _split("column", names[0], _stack(names[1:]), 100 / len(names))


def _split(direction: str, first: Any, second: Any, percentage: float) -> dict[str, Any]:
    return {
        "direction": direction,
        "first": first,
        "second": second,
        "splitPercentage": round(percentage, 2),
    }
