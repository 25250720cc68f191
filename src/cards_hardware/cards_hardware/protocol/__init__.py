"""The Muscle Link Protocol: tables of messages, codec, frames, C source generated from them."""

from cards_hardware.protocol.enums import ParameterId

__all__ = ["ParameterId"]
