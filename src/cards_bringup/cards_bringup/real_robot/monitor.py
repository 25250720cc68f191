"""What ``./cards monitor`` shows: boards on serial lines, or the topics of a running bridge."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cards_core.errors import CardsError, UnknownNameError
from cards_core.exit_codes import ExitCode
from cards_core.formats import load
from cards_hardware.boards.layout import read_layout
from cards_hardware.monitor.snapshot import BoardRow, JointRow, MonitorSource, MuscleRow, Snapshot

SETTLING = 2.0
"""Time that ``--once`` waits for messages that are less frequent than states, [s]."""

DISCOVERY = 8.0
"""Time that ``--once`` waits for any message: nodes have to discover each other first, [s]."""


def monitor(args: argparse.Namespace) -> int:
    """Show a robot's muscles, temperatures and faults; return the exit code.

    Args:
        args: Arguments of ``./cards monitor``.

    Raises:
        CardsError: An option is wrong, or there is no terminal, no board or no ROS.
    """
    if args.json and not args.once:
        raise CardsError("--json without --once (expected: both)")
    if args.layout and not (args.port and args.robot):
        raise CardsError("--layout is for ROBOT with --port (expected: both of them)")
    with contextlib.ExitStack() as stack:
        if not args.once and not sys.stdout.isatty():
            raise CardsError("no terminal to draw on (expected: one, or --once)")
        source = _on_line(args) if args.port else _on_topics(args, stack)
        stack.callback(source.close)
        if args.once:
            snapshot = _settled(source)
            _print(snapshot, as_json=args.json)
            return ExitCode.FAILED if snapshot.problem else ExitCode.DONE
        watch(source, args.rate)
    return 0


def _on_line(args: argparse.Namespace) -> MonitorSource:
    from cards_hardware.monitor.board_monitor import BoardMonitor  # pyserial is optional

    if not args.robot:
        return BoardMonitor.of_port(args.port, args.baudrate)
    robot = load(args.robot)
    layout = read_layout(
        args.layout or args.robot,
        robot,
        port=args.port,
        baudrate=args.baudrate,
        namespace=args.namespace,
    )
    return BoardMonitor.of_robot(robot, layout)


def _on_topics(args: argparse.Namespace, stack: contextlib.ExitStack) -> MonitorSource:
    if importlib.util.find_spec("rclpy") is None:
        raise CardsError(
            "rclpy is not installed, so there are no topics (expected: --port of a board)"
        )
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node

    from cards_hardware.monitor.topic_monitor import TopicMonitor
    from cards_ros.middleware import use_udp

    robot = load(args.robot) if args.robot else None
    hardware = None
    if robot is not None:
        # a robot that exists only in simulation has no boards
        with contextlib.suppress(UnknownNameError):
            hardware = read_layout(args.robot, robot, port="-").limited(robot)
    use_udp()
    context = Context()
    rclpy.init(context=context)
    stack.callback(context.try_shutdown)
    node = Node("monitor", namespace=args.namespace, context=context)
    return TopicMonitor(node, robot, hardware)


def _settled(source: MonitorSource) -> Snapshot:
    """Return a snapshot after slow states, ten per second, have arrived too."""
    begin, end = time.monotonic(), time.monotonic() + DISCOVERY
    while True:
        snapshot = source.snapshot()
        slow = not any(math.isnan(muscle.housing) for muscle in snapshot.muscles)
        rates = all(board.state_rate > 0.0 for board in snapshot.boards if board.connected)
        if snapshot.muscles and snapshot.boards and slow and rates:
            return snapshot
        now = time.monotonic()
        if snapshot.problem:
            begin = now
        if now > end or now > begin + SETTLING:
            return snapshot
        time.sleep(0.05)


def _print(snapshot: Snapshot, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(snapshot.as_dict()))
        return
    console = Console(highlight=False)
    console.print(render(snapshot, console.width, 1000, keys=False))


# The screen: tables of rich that fit the window, drawn in a loop ---------------------------------

NEAR = 0.8
"""Fraction of a limit above which a value is yellow."""

KEYS = "e emergency stop   q quit"

_WIDE = 100  # columns from which on everything has room
_GOOD, _LOOK, _BAD, _DIM = "green", "yellow", "bold red", "dim"
_STATES = {
    "ACTIVE": _GOOD,
    "ARMED": _GOOD,
    "active": _GOOD,
    "HOLD": _LOOK,
    "RELAX": _LOOK,
    "FAULT": _BAD,
    "ESTOP": _BAD,
    "unknown": _BAD,
}


def render(
    snapshot: Snapshot, width: int, height: int, *, keys: bool = True, note: str = ""
) -> RenderableType:
    """Draw a snapshot.

    Args:
        snapshot: What to draw.
        width: Width of the window, in characters.
        height: Height of the window, in lines.
        keys: Whether keys work, so that they are explained.
        note: Result of the last action.
    """
    parts: list[RenderableType] = [_headline(snapshot, note)]
    parts += [line for board in snapshot.boards for line in _board_lines(board, width)]
    if snapshot.problem:
        parts.append(Text(snapshot.problem, style=_BAD))
    joints = _joint_lines(snapshot.joints, width)
    footer = int(keys)
    used = len(parts) + len(joints) + footer + 1  # heading of the muscles
    room = max(1, height - used)
    shown = (
        snapshot.muscles if len(snapshot.muscles) <= room else _urgent(snapshot.muscles, room - 1)
    )
    if snapshot.muscles:
        parts.append(_muscle_table(shown, width))
    if len(shown) < len(snapshot.muscles):
        hidden = len(snapshot.muscles) - len(shown)
        parts.append(Text(f"{hidden} more muscles: enlarge the window", style=_DIM))
    parts += joints
    left = height - used - min(len(snapshot.muscles), room)
    parts += _event_lines(snapshot, width, left)
    if keys:
        parts.append(Text(KEYS, style=_DIM, no_wrap=True))
    return Group(*parts)


def _headline(snapshot: Snapshot, note: str) -> Text:
    text = Text(snapshot.title, style="bold", no_wrap=True, overflow="ellipsis")
    text.append(f"  {snapshot.source}", style=_DIM)
    if any(board.simulated for board in snapshot.boards):
        text.append("  simulated", style=_LOOK)
    if note:
        text.append(f"  {note}", style=_BAD)
    return text


def _board_lines(board: BoardRow, width: int) -> list[Text]:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{board.name} ", style="bold")
    line.append(board.state, style=_STATES.get(board.state, ""))
    numbers = (
        (board.vbus, "{:.1f} V"),
        (board.state_rate, "{:.0f} Hz"),
        (board.state_age * 1e3, "age {:.1f} ms"),
        (board.latency_p99 * 1e3, "latency p99 {:.1f} ms"),
        (board.heartbeat_gap * 1e3, "heartbeats <= {:.1f} ms"),
        (board.reply * 1e3, "replies <= {:.1f} ms"),
    )
    for value, form in numbers:
        if math.isfinite(value):
            line.append(f"  {form.format(value)}")
    if width >= _WIDE:
        line.append(f"  {board.port}  {board.who}", style=_DIM)
    lines = [line]
    wrong = Text("  ", no_wrap=True, overflow="ellipsis")
    if board.faults:
        wrong.append(", ".join(board.faults) + "  ", style=_BAD)
    elif board.problem:
        wrong.append(board.problem + "  ", style=_BAD if not board.connected else _LOOK)
    if board.counters:
        wrong.append(", ".join(f"{name} {n}" for name, n in board.counters.items()), style=_LOOK)
    if wrong.plain.strip():
        lines.append(wrong)
    return lines


def _muscle_table(muscles: tuple[MuscleRow, ...], width: int) -> Table:
    wide = width >= _WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style=_DIM)
    table.add_column("muscle", no_wrap=True, max_width=24 if wide else 12)
    # columns without any value are left out
    shown = {
        heading: number
        for heading, number in _COLUMNS.items()
        if any(math.isfinite(number[0](muscle)) for muscle in muscles)
    }
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True, min_width=6 if wide else 5)
    if wide:
        table.add_column("of the limit", no_wrap=True, width=12)
    table.add_column("flags", no_wrap=True, overflow="ellipsis")
    for muscle in muscles:
        cells = [
            _cell(value(muscle), form, style(muscle)) for value, form, style in shown.values()
        ]
        if wide:
            limit = muscle.tension_limit
            cells.append(_bar(muscle.tension / limit if limit else 0.0))
        flags = Text(", ".join(muscle.flags), style=_BAD if muscle.serious else _LOOK)
        name = Text(muscle.name, style=_BAD if muscle.serious else "")
        table.add_row(name, *cells, flags)
    return table


def _joint_lines(joints: tuple[JointRow, ...], width: int) -> list[Text]:
    """Return joints side by side, as many as there is room for."""
    if not joints:
        return []
    cells = []
    longest = max(len(joint.name) for joint in joints)
    for joint in joints:
        span = joint.upper - joint.lower
        near = math.isfinite(span) and not (
            joint.lower + 0.02 * span < joint.position < joint.upper - 0.02 * span
        )
        cell = Text(f"{joint.name:<{longest}} ")
        # metres of a prismatic joint are not told apart: its name does
        cell.append(f"{joint.position:8.4f}", style=_LOOK if near else "")
        cell.append(f" {joint.velocity:7.3f}/s", style=_DIM)
        cells.append(cell)
    size = len(cells[0].plain) + 2
    per_line = max(1, width // size)
    lines = []
    for begin in range(0, len(cells), per_line):
        line = Text(no_wrap=True, overflow="ellipsis")
        for cell in cells[begin : begin + per_line]:
            line.append_text(cell)
            line.append("  ")
        lines.append(line)
    return lines


def _event_lines(snapshot: Snapshot, width: int, room: int) -> list[Text]:
    if room < 1 or not snapshot.events:
        return []
    lines = []
    for age, severity, text in snapshot.events[-room:]:
        style = _BAD if severity >= 3 else _LOOK if severity == 2 else _DIM
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{_ago(age):>6} ", style=_DIM)
        line.append(text, style=style)
        lines.append(line)
    return lines


def _urgent(muscles: tuple[MuscleRow, ...], room: int) -> tuple[MuscleRow, ...]:
    """Return the muscles to show if not all fit: those with flags first, in their order."""
    ranked = sorted(
        range(len(muscles)),
        key=lambda i: (not muscles[i].serious, not muscles[i].flags, i),
    )
    return tuple(muscles[i] for i in sorted(ranked[: max(room, 0)]))


def _cell(value: float, form: str, style: str = "") -> Text:
    if not math.isfinite(value):
        return Text("-", style=_DIM)
    text = form.format(value)
    return Text(text.replace("-", " ") if float(text) == 0.0 else text, style=style)


def _tension_style(muscle: MuscleRow) -> str:
    if not muscle.tension_limit > 0.0:
        return ""
    share = muscle.tension / muscle.tension_limit
    return _BAD if share >= 1.0 else _LOOK if share >= NEAR else ""


def _length_style(muscle: MuscleRow) -> str:
    return _BAD if muscle.length < muscle.length_min or muscle.length > muscle.length_max else ""


def _housing_style(muscle: MuscleRow) -> str:
    heat = muscle.housing
    return _BAD if heat >= muscle.hard else _LOOK if heat >= muscle.soft else ""


def _plain(_muscle: MuscleRow) -> str:
    return ""


_Column = tuple[Callable[[MuscleRow], float], str, Callable[[MuscleRow], str]]

_COLUMNS: dict[str, _Column] = {
    "mm": (lambda muscle: muscle.length * 1e3, "{:.1f}", _length_style),
    "mm/s": (lambda muscle: muscle.rate * 1e3, "{:.0f}", _plain),
    "N": (lambda muscle: muscle.tension, "{:.1f}", _tension_style),
    "of N": (lambda muscle: muscle.tension_limit, "{:.0f}", lambda _muscle: _DIM),
    "A": (lambda muscle: muscle.current, "{:.2f}", _plain),
    "C": (lambda muscle: muscle.housing, "{:.0f}", _housing_style),
    "core C": (lambda muscle: muscle.core, "{:.0f}", _plain),
}
"""Heading to number, form and style."""


def _bar(share: float, size: int = 12) -> Text:
    if not math.isfinite(share):
        return Text("")
    filled = min(size, max(0, round(share * size)))
    style = _BAD if share >= 1.0 else _LOOK if share >= NEAR else _GOOD
    bar = Text("█" * filled, style=style)
    bar.append("·" * (size - filled), style=_DIM)
    return bar


def _ago(age: float) -> str:
    return f"{age:.0f} s" if age < 100 else f"{age / 60:.0f} min"


def watch(source: MonitorSource, rate: float, console: Console | None = None) -> None:
    """Show the snapshots of a source until q or Ctrl-C.

    Args:
        source: What to show.
        rate: Pictures per second.
        console: Where; the terminal without it.
    """
    console = console or Console()
    note = ""
    with (
        keyboard() as keys,
        Live(console=console, screen=console.is_terminal, auto_refresh=False) as live,
    ):
        while True:
            width, height = console.size
            snapshot = source.snapshot()
            live.update(render(snapshot, width, height, keys=keys, note=note), refresh=True)
            typed = _typed(1.0 / rate, keys).lower()
            if "e" in typed:
                try:
                    note = source.estop()
                except CardsError as error:
                    note = str(error)
            if "q" in typed:
                return


@contextlib.contextmanager
def keyboard() -> Iterator[bool]:
    """Read single keys without echo; yields False if there is no keyboard."""
    try:
        import termios
        import tty

        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (ImportError, OSError, ValueError, termios.error):
        yield False
        return
    try:
        tty.setcbreak(number)
        yield True
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _typed(timeout: float, keys: bool) -> str:
    """Return the typed keys; waits for the first one."""
    if not keys:
        time.sleep(timeout)
        return ""
    number = sys.stdin.fileno()
    ready, _, _ = select.select([number], [], [], timeout)
    # not sys.stdin.read: what it keeps in its buffer, select does not see
    if not ready:
        return ""
    try:
        return os.read(number, 64).decode(errors="replace") or "q"
    except OSError:
        return "q"  # the terminal is gone
