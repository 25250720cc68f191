"""``./cards controllers``: the controllers there are, and the parameters of one.

With a robot: which of them can drive it, and why the others cannot; the parameters as they are for
that robot. Controllers of other installed packages are listed too.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from cards_bringup.cli import print_columns
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards controllers                                what there is
  ./cards controllers ctc_operational                its parameters
  ./cards controllers ctc_joint --robot roboy_arm    the same, with the lengths and defaults there
  ./cards controllers --robot bm_arm                 which can drive the robot, and why not others
  ./cards controllers --json

A controller of your own: docs/python.md#a-controller-of-your-own
"""

EXAMPLE_ROBOTS = ("planar_2r", "musashi_like")
"""Robots of which the first that a controller can drive shows its parameters where none is asked
for."""

COLUMNS = (
    ("kind", "controller"),
    ("space", "references"),
    ("needs", "needs of a state"),
    ("commands", "commands"),
    ("summary", "what it does"),
)

PARAMETER_COLUMNS = ("parameter", "unit", "range", "default", "live", "meaning")


def add_controllers(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("controllers", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("kind", nargs="?", metavar="KIND", help="show the parameters of this one")
    parser.add_argument(
        "--robot",
        help="robot to drive: name under models/, or the path of an SDF file (default with KIND: "
        f"{EXAMPLE_ROBOTS[0]})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def describe(kind: str) -> dict[str, Any]:
    """Return what a controller states of itself, or why it cannot be loaded under ``error``."""
    from cards_core.control.registry import controller_class
    from cards_core.errors import CardsError

    try:
        controller = controller_class(kind)
    except CardsError as error:
        return {"kind": kind, "error": str(error)}
    if missing := [name for name in ("summary", "space") if not hasattr(controller, name)]:
        return {"kind": kind, "error": f"its class does not state {' and '.join(missing)}"}
    return {
        "kind": kind,
        "summary": controller.summary,
        "space": controller.space,
        "needs": ["q", "qd", *controller.needs],
        "commands": list(controller.commands),
        "class": f"{controller.__module__}.{controller.__qualname__}",
    }


def describe_all(robot_name: str | None) -> dict[str, Any]:
    """Return what all controllers state; for a robot also ``suited``, and why not, ``unsuited``.

    Raises:
        CardsError: There is no such robot, or it has no muscles.
    """
    from cards_core.control.registry import controller_class, controller_kinds
    from cards_core.formats import load

    robot = None if robot_name is None else load(robot_name)
    rows = [describe(kind) for kind in controller_kinds()]
    if robot is None:
        return {"robot": None, "controllers": rows}
    for row in rows:
        if "error" not in row:
            reason = controller_class(row["kind"]).unsuited(robot)
            row |= {"suited": not reason, "unsuited": reason}
    return {"robot": robot.name, "controllers": rows}


def describe_parameters(kind: str, robot_name: str | None) -> dict[str, Any]:
    """Return what a controller states of itself, and its parameters for a robot.

    Raises:
        UnknownNameError: There is no such controller or robot.
        CardsError: The controller cannot be loaded, or cannot drive the robot.
    """
    from cards_core.control.registry import controller_class, controller_parameters
    from cards_core.errors import CardsError
    from cards_core.formats import load
    from cards_core.loop.control_setup import (
        model_parameters,
        reference_parameters,
        run_parameters,
    )

    controller = controller_class(kind)
    names = EXAMPLE_ROBOTS if robot_name is None else (robot_name,)
    robots = [load(name) for name in names]
    robot = next((robot for robot in robots if not controller.unsuited(robot)), robots[0])
    if reason := controller.unsuited(robot):
        raise CardsError(
            f"{kind} cannot drive {robot.name}: {reason} (expected: --robot and one that it can)"
        )
    own = [*controller_parameters(kind, robot), *reference_parameters(controller)]
    shared = [*model_parameters(), *run_parameters()]
    return {
        **describe(kind),
        "robot": robot.name,
        "parameters": [_parameter(spec) for spec in own],
        "shared_parameters": [_parameter(spec) for spec in shared],
    }


def _parameter(spec: Any) -> dict[str, Any]:
    from cards_core.json_values import json_value

    return {
        "name": spec.name,
        "type": spec.type_name,
        "unit": spec.unit,
        "range": spec.range_text,
        "lower": json_value(spec.lower),  # None without a limit
        "upper": json_value(spec.upper),
        "choices": list(spec.choices),
        "length": spec.length,
        "names": list(spec.names),
        "default": json_value(spec.ros_default),
        "default_text": spec.shown_default.replace("`", ""),
        "live": spec.live,
        "description": spec.description,
    }


def run(args: argparse.Namespace) -> int:
    """Run the command; an error if a controller cannot be loaded."""
    if args.kind is not None:
        result = describe_parameters(args.kind, args.robot)
        if args.json:
            print(json.dumps(result))
        else:
            _print_parameters(result)
        return ExitCode.DONE
    result = describe_all(args.robot)
    rows = result["controllers"]
    if args.json:
        print(json.dumps(result))
    elif args.robot is None:
        _print_table(rows, COLUMNS)
    else:
        for row in rows:
            if "error" not in row:
                row["drives"] = "yes" if row["suited"] else f"no: {row['unsuited']}"
        _print_table(rows, (COLUMNS[0], ("drives", result["robot"]), COLUMNS[-1]))
    return ExitCode.ERROR if any("error" in row for row in rows) else ExitCode.DONE


def _print_table(rows: list[dict[str, Any]], columns: tuple[tuple[str, str], ...]) -> None:
    cells = [[title for _, title in columns]]
    cells += [[_cell(row[key]) for key, _ in columns] for row in rows if "error" not in row]
    print_columns(cells)
    for row in rows:
        if "error" in row:
            print(f"{row['kind']}: error: {row['error']}")


def _cell(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _print_parameters(result: dict[str, Any]) -> None:
    print(f"{result['kind']}: {result['summary']} ({result['class']})")
    print(f"references: {result['space']} space; needs of a state: {_cell(result['needs'])}; "
          f"commands: {_cell(result['commands'])}\n")  # fmt: skip
    print(f"parameters for {result['robot']}:\n")
    cells = [list(PARAMETER_COLUMNS)]
    cells += [
        [
            spec["name"],
            spec["unit"] or "-",
            spec["range"] or "-",
            spec["default_text"],
            "yes" if spec["live"] else "-",
            spec["description"],
        ]
        for spec in result["parameters"]
    ]
    print_columns(cells)
    names = ", ".join(spec["name"] for spec in result["shared_parameters"])
    print(f"\nand those of every controller (docs/ros_interface.md): {names}")
