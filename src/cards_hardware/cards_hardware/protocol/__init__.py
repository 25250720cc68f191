"""The Muscle Link Protocol: tables of messages, codec, frames, C source generated from them."""

from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import Values, encode, pack, unpack, unpack_payload, wrap
from cards_hardware.protocol.enums import (
    AckCode,
    CalibrateAction,
    Caps,
    EstopReason,
    EventCode,
    FastFlag,
    Fault,
    HeaderFlag,
    MuscleFlag,
    ParameterId,
    Request,
    ResetCause,
    Severity,
    State,
)
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.schema import BROADCAST, HOST, MAJOR, MAX_JOINTS, MAX_MUSCLES
from cards_hardware.protocol.table import BY_ID, MESSAGES

__all__ = [
    "BROADCAST",
    "BY_ID",
    "HOST",
    "MAJOR",
    "MAX_JOINTS",
    "MAX_MUSCLES",
    "MESSAGES",
    "AckCode",
    "CalibrateAction",
    "Caps",
    "EstopReason",
    "EventCode",
    "FastFlag",
    "Fault",
    "Frame",
    "FrameDecoder",
    "HeaderFlag",
    "MuscleFlag",
    "ParameterId",
    "ProtocolError",
    "Request",
    "ResetCause",
    "Severity",
    "State",
    "Values",
    "encode",
    "encode_frame",
    "pack",
    "unpack",
    "unpack_payload",
    "wrap",
]
