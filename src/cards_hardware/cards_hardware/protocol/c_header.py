"""C header of the firmware, written from the tables."""

from __future__ import annotations

import re
from typing import Any

from cards_hardware.protocol import enums, schema, units
from cards_hardware.protocol.c_source import (
    NOTICE,
    WIDTH,
    maximum,
    pack_head,
    type_name,
    unpack_head,
)
from cards_hardware.protocol.parameters import ParameterId
from cards_hardware.protocol.schema import Field, Message
from cards_hardware.protocol.table import MESSAGES

PREFIX: dict[type, str] = {
    enums.State: "STATE",
    enums.Request: "REQUEST",
    enums.AckCode: "ACK",
    enums.Fault: "FAULT",
    enums.MuscleFlag: "MUSCLE",
    enums.FastFlag: "FAST",
    enums.Caps: "CAP",
    enums.EventCode: "EVENT",
    enums.Severity: "SEVERITY",
    enums.ResetCause: "RESET",
    enums.EstopReason: "ESTOP",
    enums.CalibrateAction: "CALIBRATE",
    enums.HeaderFlag: "HEADER",
}
"""What stands between ``MLP_`` and the member, per enumeration."""

_USE = """\
/* Payload <-> struct. `pack` returns false if a count is too large or `size` too small; `unpack`
 * if the payload is shorter than its counts say or a count is too large. Then nothing may be used.
 * Bytes behind a payload are ignored; elements that are not there are 0. Elements of [mask] fields
 * stand at the index of their bit. */
"""


def header() -> str:
    """Return the text of ``protocol.h``."""
    parts = [
        NOTICE,
        "/* Muscle Link Protocol: messages, their fields and what the numbers mean. */\n"
        "#ifndef MLP_PROTOCOL_H\n#define MLP_PROTOCOL_H\n\n"
        "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n",
        _constants(),
        *(_enumeration(item) for item in enums.ENUMS),
        _types(),
        _parameter_header(),
        *(_struct(item) for item in MESSAGES.values()),
        _for_each(),
        _USE,
        "".join(f"{pack_head(m)};\n{unpack_head(m)};\n" for m in MESSAGES.values()),
        "#endif\n",
    ]
    return "\n".join(parts)


def _constants() -> str:
    lines = [
        _define("MLP_MAJOR", f"{schema.MAJOR}U"),
        _define("MLP_HEADER_SIZE", f"{schema.HEADER_SIZE}U"),
        _define("MLP_CRC_SIZE", f"{schema.CRC_SIZE}U"),
        _define("MLP_MAX_FRAME", f"{schema.MAX_FRAME}U", "header, payload, CRC"),
        _define("MLP_MAX_PAYLOAD", f"{schema.MAX_PAYLOAD}U"),
        _define("MLP_MAX_WIRE", f"{schema.MAX_WIRE}U", "after COBS, without the delimiter"),
        _define("MLP_MAX_MUSCLES", f"{schema.MAX_MUSCLES}U"),
        _define("MLP_MAX_JOINTS", f"{schema.MAX_JOINTS}U"),
        _define("MLP_MAX_TEXT", f"{schema.MAX_TEXT}U"),
        _define("MLP_NODE_HOST", f"{schema.HOST}U"),
        _define("MLP_NODE_BROADCAST", f"{schema.BROADCAST}U"),
        _define("MLP_NO_INDEX8", f"{schema.NO_INDEX8}U"),
        _define("MLP_NO_INDEX16", f"{schema.NO_INDEX16}U"),
        "",
        '/* "no valid value" of a quantity */',
        _define("MLP_INVALID_I16", "INT16_MIN"),
        _define("MLP_INVALID_I32", "INT32_MIN"),
        _define("MLP_INVALID_U16", "UINT16_MAX"),
        _define("MLP_INVALID_U32", "UINT32_MAX"),
        "",
        "/* SI value of one count of a quantity */",
    ]
    for name, quantity in units.QUANTITIES.items():
        if quantity.unit != "count":
            value = f"{quantity.scale!r}f"
            lines.append(_define(f"MLP_SCALE_{name.upper()}", value, quantity.unit))
    return "\n".join(lines) + "\n"


def _define(name: str, value: str, text: str = "") -> str:
    return _noted(f"#define {name} {value}", text)


def _noted(code: str, text: str) -> str:
    """Return a line of code with a comment, which goes before it if there is no room."""
    if not text:
        return code
    line = f"{code} /* {text} */"
    if len(line) <= WIDTH:
        return line
    indent = code[: len(code) - len(code.lstrip())]
    return f"{indent}/* {text} */\n{code}"


def _title(name: str, text: str) -> str:
    line = f"/* {name}: {text} */"
    return line if len(line) <= WIDTH else f"/* {name}:\n * {text} */"


def _enumeration(kind: type[enums.Described] | type[enums.DescribedFlag]) -> str:
    prefix = f"MLP_{PREFIX[kind]}_"
    title = _title(kind.__name__, (kind.__doc__ or "").splitlines()[0])
    members: list[Any] = list(kind)
    if issubclass(kind, enums.DescribedFlag):
        lines = [
            _define(f"{prefix}{m.name}", f"(UINT32_C(1) << {int(m).bit_length() - 1})", m.text)
            for m in members
        ]
        return "\n".join([title, *lines, ""])
    body = [_noted(f"    {prefix}{m.name} = {int(m)},", m.text) for m in members]
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    return "\n".join([title, f"enum mlp_{name} {{", *body, "};", ""])


def _types() -> str:
    body = [f"    MLP_TYPE_{m.name} = 0x{m.id:02X}," for m in MESSAGES.values()]
    return "\n".join(["/* Type bytes of the messages */", "enum mlp_type {", *body, "};", ""])


def _parameter_header() -> str:
    ids = [
        _noted(f"    MLP_PARAM_{p.name} = 0x{int(p):02X},", f"{p.text} [{_wire_unit(p)}]")
        for p in ParameterId
    ]
    places = [f"    MLP_PLACE_{p.name} = {i}," for i, p in enumerate(ParameterId)]
    return "\n".join(
        [
            "/* ParameterId: values are i32, in the unit in brackets. */",
            "enum mlp_param {",
            *ids,
            "};",
            "",
            "/* What the index of a parameter counts */",
            "enum mlp_scope {",
            "    MLP_SCOPE_BOARD = 0,",
            "    MLP_SCOPE_MUSCLE = 1,",
            "    MLP_SCOPE_JOINT = 2,",
            "};",
            "",
            "/* Places of the parameters in mlp_parameters */",
            "enum mlp_place {",
            *places,
            "};",
            "",
            f"#define MLP_PARAMETER_COUNT {len(ParameterId)}U",
            "",
            "struct mlp_parameter_info {",
            "    uint16_t id;     /* enum mlp_param */",
            "    uint8_t scope;   /* enum mlp_scope */",
            "    int32_t initial; /* value of a board that was never set up */",
            "    int32_t minimum;",
            "    int32_t maximum;",
            "};",
            "",
            "extern const struct mlp_parameter_info mlp_parameters[MLP_PARAMETER_COUNT];",
            "",
        ]
    )


def _wire_unit(parameter: ParameterId) -> str:
    if parameter.scale == 1:
        return parameter.unit or "1"
    return f"{parameter.scale:g} {parameter.unit}".strip()


def _struct(item: Message) -> str:
    lines = [_title(item.name, item.text), f"{type_name(item)} {{"]
    for field in item.scalars:
        lines.append(_noted(f"    {field.type.c_type} {field.name};", _comment(field)))
    for group in item.groups:
        for field in group.fields:
            array = f"{field.name}[{maximum(group)}]"
            lines.append(_noted(f"    {field.type.c_type} {array};", _comment(field)))
    if not item.scalars and not item.groups:
        lines.append("    uint8_t unused; /* C has no empty structs */")
    payload = f"MLP_{item.name}_MAX_PAYLOAD"
    return "\n".join([*lines, "};", f"#define {payload} {item.max_payload}U", ""])


def _comment(field: Field) -> str:
    unit = ""
    if field.quantity is not None:
        quantity = field.quantity
        unit = (
            f" [{quantity.unit}]"
            if quantity.scale == 1
            else (f" [{quantity.scale:g} {quantity.unit}]")
        )
    return f"{field.text}{unit}"


def _for_each() -> str:
    lines = [f"    X({m.name}, {m.name.lower()})" for m in MESSAGES.values()]
    body = " \\\n".join(lines)
    return f"/* X(NAME, name) for every message */\n#define MLP_FOR_EACH_MESSAGE(X) \\\n{body}\n"
