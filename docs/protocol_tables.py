"""Write the tables of docs/protocol.md from the protocol's own tables.

Run ``python docs/protocol_tables.py`` after a change of the protocol; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from cards_hardware.protocol.enums import ENUMS, Described, DescribedFlag, ParameterId
from cards_hardware.protocol.schema import QUANTITIES, WIRE, Field, Group, Message
from cards_hardware.protocol.table import MESSAGES

PAGE = Path(__file__).with_name("protocol.md")

WHO = {
    "host": "host to board",
    "device": "board to host",
    "both": "both ways",
    "board": "board to drives",
    "drive": "drives to board",
}


def messages() -> Iterator[str]:
    """Yield the table of messages, then each with its fields."""
    yield "| type | name | direction | bytes of payload | what for |"
    yield "|---|---|---|---|---|"
    for message in MESSAGES.values():
        yield (
            f"| {message.id:02X} | [{message.name}](#{_anchor(message)}) | "
            f"{WHO[message.direction]} | {_size(message)} | {_cell(message.text)} |"
        )
    for message in MESSAGES.values():
        yield ""
        yield f"### {message.id:02X} {message.name}"
        yield ""
        yield message.text
        if not message.scalars and not message.groups:
            continue
        yield ""
        yield "| field | type | unit | times | what |"
        yield "|---|---|---|---|---|"
        for field in message.scalars:
            yield _field(field, "")
        for group in message.groups:
            for field in group.fields:
                yield _field(field, _times(group))


def quantities() -> Iterator[str]:
    """Yield the table of quantities."""
    yield "| quantity | wire type | one count is | invalid |"
    yield "|---|---|---|---|"
    for name, quantity in QUANTITIES.items():
        invalid = WIRE[quantity.wire].invalid
        yield f"| {name} | {quantity.wire} | {quantity.scale:g} {quantity.unit} | {invalid} |"


def enums() -> Iterator[str]:
    """Yield a table for each enumeration."""
    for kind in ENUMS:
        yield ""
        yield f"### {kind.__name__}"
        yield ""
        yield _summary(kind)
        yield ""
        yield "| value | name | meaning |"
        yield "|---|---|---|"
        for item in kind:
            number = int(item)
            value = f"bit {number.bit_length() - 1}" if issubclass(kind, DescribedFlag) else number
            yield f"| {value} | {item.name} | {_cell(item.text)} |"


def parameters() -> Iterator[str]:
    """Yield the table of parameters."""
    yield "| id | name | one per | default | range | one count is | what |"
    yield "|---|---|---|---|---|---|---|"
    for item in ParameterId:
        unit = f"{item.scale:g} {item.unit}".strip() if item.unit or item.scale != 1 else ""
        yield (
            f"| {item:02X} | {item.name} | {item.scope} | {item.default} | "
            f"{item.minimum} to {item.maximum} | {unit} | {_cell(item.text)} |"
        )


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "messages": messages,
    "quantities": quantities,
    "enumerations": enums,
    "parameters": parameters,
}


def with_tables(text: str) -> str:
    """Return the page with new tables between its ``<!-- NAME -->`` and ``<!-- end -->`` marks."""
    for name, make in TABLES.items():
        begin, end = f"<!-- {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        table = "\n".join([begin, "", *make(), "", end])
        text, count = pattern.subn(lambda _match, table=table: table, text)
        if count != 1:
            raise SystemExit(f"{PAGE.name}: {count} tables marked '{begin}', expected one")
    return text


def _anchor(message: Message) -> str:
    return f"{message.id:02X} {message.name}".lower().replace(" ", "-")


def _size(message: Message) -> str:
    low, high = message.min_payload, message.max_payload
    return str(low) if low == high else f"{low} to {high}"


def _times(group: Group) -> str:
    if isinstance(group.count, int):
        return str(group.count)
    return {"mask": "one per bit of mask", "length": "length"}.get(group.count, group.count)


def _field(field: Field, times: str) -> str:
    unit = ""
    if field.quantity is not None:
        scale = f"{field.quantity.scale:g} " if field.quantity.scale != 1.0 else ""
        unit = f"{scale}{field.quantity.unit}"
    return f"| {field.name} | {field.wire} | {unit} | {times} | {_cell(field.text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _summary(kind: type[Described] | type[DescribedFlag]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
