"""The text of a STEP file (ISO 10303-21): whether it is whole, and the placements with names.

Open CASCADE translates shapes and forgets the names of placements and points; they are in the
text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.imports.markers import MARKER, meant_marker, misspelt
from cards_core.spatial import Pose

MAX_BYTES = 400_000_000
"""Longest file that is read."""

Value: TypeAlias = "str | float | Reference | list[Any]"


@dataclass(frozen=True)
class Reference:
    """``#12``: another record."""

    number: int


@dataclass(frozen=True, eq=False)
class StepText:
    """A STEP file as text.

    Attributes:
        text: All of it.
        shown: Its name in messages.
        unit: Unit of length, in words.
        data_line: Line of ``DATA;``.
        last_line: Of the last line.
        remarks: (code, subject, message) of what looks wrong without being an error.
    """

    text: str
    shown: str
    unit: str
    data_line: int
    last_line: int
    remarks: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, eq=False)
class NamedPlacement:
    """A placement or point with the name of a marker.

    Attributes:
        name: Its name.
        product: Name of the part that it belongs to.
        pose: In the part's coordinates, in the file's unit.
        unit: That unit, [m].
    """

    name: str
    product: str
    pose: Pose
    unit: float


def check_text(path: Path, shown: str) -> StepText:
    """Read the text and check that it is a whole STEP file.

    Raises:
        DescriptionError: It is not; the message names the line.
    """
    if path.stat().st_size > MAX_BYTES:
        raise DescriptionError(
            "is too large", source=shown, expected=f"at most {MAX_BYTES // 1_000_000} MB"
        )
    # latin-1: every byte is a character, and the format's own characters are those of ASCII
    text = path.read_bytes().decode("latin-1")
    last = text.count("\n") + 1
    if not re.match(r"\s*(/\*.*?\*/\s*)*ISO-10303-21\s*;", text, re.DOTALL):
        raise DescriptionError(
            "is no STEP file", source=shown, line=1, expected="'ISO-10303-21;' at its beginning"
        )
    data = re.search(r"\bDATA\s*(\([^;]*\))?;", text)
    if data is None:
        raise DescriptionError(
            "has no data section", source=shown, line=last, expected="'DATA;' after the header"
        )
    if not re.search(r"END-ISO-10303-21\s*;\s*\Z", text):
        raise DescriptionError(
            "ends in the middle",
            source=shown,
            line=last,
            expected="'END-ISO-10303-21;' at its end",
        )
    start = _line_at(text, data.start())
    if not re.search(r"#\d+\s*=", text[data.end() :]):
        raise DescriptionError(
            "has no records", source=shown, line=start, expected="'#1=...;' after 'DATA;'"
        )
    remarks = tuple(_remarks(text))
    return StepText(text, shown, _unit(text), start, last, remarks)


def _remarks(text: str) -> Iterator[tuple[str, str, str]]:
    """Say what refers to nothing: Open CASCADE leaves such records out without a word."""
    defined = {int(n) for n in re.findall(r"(?m)^\s*#(\d+)\s*=", text)}
    if not defined or len(defined) > 2_000_000:
        return
    missing = [m for m in re.finditer(r"#(\d+)", text) if int(m[1]) not in defined]
    if missing:
        line = _line_at(text, missing[0].start())
        yield (
            "record-missing",
            f"line {line}",
            f"refers to #{missing[0][1]}, which is not in the file"
            + (f"; {len(missing) - 1} more like it" if len(missing) > 1 else "")
            + "; shapes may be missing",
        )


_SI = re.compile(r"SI_UNIT\s*\(\s*(?:\$|\.(\w+)\.)\s*,\s*\.METRE\.")
_UNITS = {"MILLI": "mm", "CENTI": "cm", "": "m", "MICRO": "um", "KILO": "km"}


def _unit(text: str) -> str:
    units = [
        record
        for record in re.findall(r"=\s*\(([^;]*?LENGTH_UNIT\s*\(\s*\)[^;]*?)\)\s*;", text)
        if "NAMED_UNIT" in record
    ]
    found = set()
    for record in units:
        if match := re.search(r"CONVERSION_BASED_UNIT\s*\(\s*'([^']*)'", record):
            found.add(match[1].lower())
    if not found:
        for record in units:
            if match := _SI.search(record):
                found.add(_UNITS.get(match[1] or "", f"{match[1]} metre"))
    return ", ".join(sorted(found)) or "mm (the file does not say)"


# Records ---------------------------------------------------------------------------------------

_RECORD = re.compile(r"#(\d+)\s*=\s*((?:[^;']++|'(?:[^']|'')*+')*+);")
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*+')|#(?P<ref>\d+)|(?P<number>[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)"
    r"|(?P<word>\.?[A-Za-z_][A-Za-z_0-9]*\.?)|(?P<sign>[(),$*]))"
)


class _Records:
    """Records by number; parsed when they are asked for."""

    def __init__(self, text: str) -> None:
        self.raw = {int(m[1]): m[2].strip() for m in _RECORD.finditer(text)}

    def of(self, *kinds: str) -> Iterator[tuple[int, str]]:
        for number, raw in self.raw.items():
            if raw.startswith(kinds) and raw.split("(", 1)[0].strip() in kinds:
                yield number, raw

    def kind(self, number: int) -> str:
        return self.raw.get(number, "").split("(", 1)[0].strip()

    def arguments(self, number: int) -> list[Any]:
        raw = self.raw.get(number, "")
        start = raw.find("(")
        return [] if start < 0 else _parse(raw[start:])

    def refer(self, number: int, index: int) -> int:
        """Return the number of the record that an argument refers to; -1 if it is no reference."""
        values = self.arguments(number)
        item = values[index] if index < len(values) else None
        return item.number if isinstance(item, Reference) else -1


def _parse(raw: str) -> list[Any]:
    """Return the arguments of a record, nested lists of values."""
    stack: list[list[Any]] = [[]]
    for match in _TOKEN.finditer(raw):
        if match["sign"] == "(":
            stack.append([])
            if len(stack) > 30:
                return []
        elif match["sign"] == ")":
            done = stack.pop()
            if not stack:
                return []
            stack[-1].append(done)
            if len(stack) == 1:
                return done
        elif match["ref"]:
            stack[-1].append(Reference(int(match["ref"])))
        elif match["number"]:
            stack[-1].append(float(match["number"]))
        elif match["text"]:
            stack[-1].append(_decoded(match["text"][1:-1]))
        elif match["word"] or match["sign"] in ("$", "*"):
            stack[-1].append(match["word"])
    return []


def _decoded(text: str) -> str:
    """Return a string of the file as it is meant; ISO 10303-21 writes other letters in hex."""

    def hexadecimal(match: re.Match[str]) -> str:
        digits = bytes.fromhex(match[2])
        return digits.decode("utf-16-be" if match[1] == "2" else "utf-32-be", "replace")

    text = re.sub(r"\\X([24])\\((?:[0-9A-Fa-f]{4})+)\\X0\\", hexadecimal, text.replace("''", "'"))
    return re.sub(r"\\X\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def named_placements(text: StepText) -> list[NamedPlacement]:
    """Return placements and points that have the name of a marker, with the part they are in."""
    if not re.search(rf"(AXIS2_PLACEMENT_3D|CARTESIAN_POINT)\s*\(\s*'{MARKER}", text.text):
        return []
    records = _Records(text.text)
    owners = _owners(records)
    out = []
    for number, _ in records.of("AXIS2_PLACEMENT_3D", "CARTESIAN_POINT"):
        values = records.arguments(number)
        if not values or not isinstance(values[0], str) or not re.match(MARKER, values[0]):
            continue
        wrong = partial(
            DescriptionError,
            source=text.shown,
            line=_line(text.text, number),
            element=f"placement '{values[0]}'",
        )
        try:
            pose = _placement(records, number)
        except (IndexError, TypeError, ValueError):
            raise wrong("cannot be understood", expected="numbers and directions") from None
        if number not in owners:
            expected = "an item of the shape representation of a part"
            raise wrong("belongs to no part", expected=expected)
        for product, unit in owners[number]:
            if not math.isfinite(unit):
                expected = "metres with a prefix, or a unit converted to them, such as INCH"
                raise wrong("its unit of length is unknown", expected=expected)
            out.append(NamedPlacement(values[0], product, pose, unit))
    return out


def misspelt_placements(text: StepText) -> Iterator[tuple[str, str, str]]:
    """Yield a remark for placements and points that nearly have the name of a marker."""
    named = re.compile(
        r"(?:AXIS2_PLACEMENT_3D|CARTESIAN_POINT)\s*\(\s*'([A-Za-z]{3,10}\s*:[^']{1,200})'"
    )
    for match in named.finditer(text.text):
        if (meant := meant_marker(match[1])) is not None:
            line = _line_at(text.text, match.start())
            yield "marker-misspelt", f"placement '{match[1]}'", f"line {line}: {misspelt(meant)}"


def external_reference_line(text: StepText) -> int | None:
    """Return the line of the first record that refers to another file, None if it is not found."""
    match = re.search(r"#\d+\s*=\s*(?:DOCUMENT_FILE\b|\([^;]*\bDOCUMENT_FILE\s*\()", text.text)
    return None if match is None else _line_at(text.text, match.start())


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _line(text: str, number: int) -> int | None:
    match = re.search(rf"#{number}\s*=", text)
    return None if match is None else _line_at(text, match.start())


def _placement(records: _Records, number: int) -> Pose:
    if records.kind(number) == "CARTESIAN_POINT":
        return Pose(np.eye(3), np.array(records.arguments(number)[1], dtype=float).reshape(3))
    point = np.array(records.arguments(records.refer(number, 1))[1], dtype=float).reshape(3)
    z, x = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    if (ref := records.refer(number, 2)) >= 0:
        z = np.array(records.arguments(ref)[1], dtype=float).reshape(3)
    z = z / np.linalg.norm(z)
    if (ref := records.refer(number, 3)) >= 0:
        x = np.array(records.arguments(ref)[1], dtype=float).reshape(3)
    elif abs(z[0]) > 0.9:
        x = np.array([0.0, 1.0, 0.0])
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(z, x), z])
    if not np.isfinite(rotation).all():
        raise ValueError
    return Pose(rotation, point)


def _owners(records: _Records) -> Mapping[int, list[tuple[str, float]]]:
    """Return for every item the parts (name, unit [m]) whose shape representations have it."""
    product_of: dict[int, str] = {}
    for number, _ in records.of("SHAPE_DEFINITION_REPRESENTATION"):
        shape, representation = records.refer(number, 0), records.refer(number, 1)
        formation = records.refer(records.refer(shape, 2), 2)
        product = records.arguments(records.refer(formation, 2))
        if len(product) > 1 and isinstance(product[1], str):
            product_of[representation] = product[1] or str(product[0])
    for number, _ in records.of(
        "SHAPE_REPRESENTATION_RELATIONSHIP", "CONSTRUCTIVE_GEOMETRY_REPRESENTATION_RELATIONSHIP"
    ):
        pair = (records.refer(number, 2), records.refer(number, 3))
        for one, other in (pair, pair[::-1]):
            if one in product_of:
                product_of.setdefault(other, product_of[one])
    out: dict[int, list[tuple[str, float]]] = {}
    for representation, name in product_of.items():
        values = records.arguments(representation)
        if len(values) < 3 or not isinstance(values[1], list):
            continue
        unit = _length_unit(records, records.refer(representation, 2))
        waiting = [item.number for item in values[1] if isinstance(item, Reference)]
        seen = set(waiting)
        while waiting:
            item = waiting.pop()
            out.setdefault(item, []).append((name, unit))
            if records.kind(item) in ("GEOMETRIC_SET", "GEOMETRIC_CURVE_SET", "VERTEX_POINT"):
                for value in records.arguments(item)[1:]:
                    inside = value if isinstance(value, list) else [value]
                    fresh = {v.number for v in inside if isinstance(v, Reference)} - seen
                    seen |= fresh
                    waiting.extend(fresh)
    return out


_PREFIX = {"KILO": 1e3, "CENTI": 1e-2, "MILLI": 1e-3, "MICRO": 1e-6, "DECI": 1e-1, "": 1.0}


def _length_unit(records: _Records, context: int) -> float:
    """Return the unit of length of a representation's context, [m]; nan if it states none."""
    raw = records.raw.get(context, "")
    units = re.search(r"GLOBAL_UNIT_ASSIGNED_CONTEXT\s*\(\s*\(([^)]*)\)", raw)
    for number in re.findall(r"#(\d+)", units[1] if units else ""):
        unit = records.raw.get(int(number), "")
        if "LENGTH_UNIT" not in unit:
            continue
        if match := _SI.search(unit):
            return _PREFIX.get(match[1] or "", math.nan)
        if match := re.search(r"CONVERSION_BASED_UNIT\s*\(\s*'[^']*'\s*,\s*#(\d+)", unit):
            measure = records.raw.get(int(match[1]), "")
            value = re.search(r"\(\s*(?:\w+\s*\(\s*)?([-+.\dEe]+)\s*\)?\s*,\s*#(\d+)", measure)
            base = records.raw.get(int(value[2]), "") if value else ""
            prefix = _SI.search(base)
            if value and prefix:
                return float(value[1]) * _PREFIX.get(prefix[1] or "", math.nan)
    return math.nan


def density_scale(text: StepText) -> float | None:
    """Return by what Open CASCADE's densities [g/cm^3] must be multiplied to be [kg/m^3].

    It ignores the prefix of the unit of mass, so that kg/m^3 come out a thousand times too small.
    None if the densities of the file have several units of mass, or one that is not a gram.
    """
    if "DERIVED_UNIT_ELEMENT" not in text.text:
        return 1e3
    records = _Records(text.text)
    prefixes = set()
    for number, _ in records.of("MEASURE_REPRESENTATION_ITEM"):
        unit = records.refer(number, 2)
        elements = records.arguments(unit)[:1] if records.kind(unit) == "DERIVED_UNIT" else []
        for element in elements[0] if elements and isinstance(elements[0], list) else []:
            if not isinstance(element, Reference):
                continue
            raw = records.raw.get(records.refer(element.number, 0), "")
            if "MASS_UNIT" in raw:
                gram = re.search(r"SI_UNIT\s*\(\s*(?:\$|\.(\w+)\.)\s*,\s*\.GRAM\.", raw)
                prefixes.add("?" if gram is None else gram[1] or "")
    scales = {"": 1e3, "KILO": 1e6}
    if len(prefixes) > 1 or not prefixes <= set(scales):
        return None
    return scales[prefixes.pop()] if prefixes else 1e3
