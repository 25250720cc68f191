"""Parameters, limits and calibration of a board: what is set up rather than commanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cards_hardware.board_data import mask_of
from cards_hardware.errors import RequestError
from cards_hardware.exchange import TIMEOUT, TRIES, Exchange
from cards_hardware.protocol.parameters import ParameterId

_PATIENCE = 1.0  # [s] for an answer: nothing moves, and a busy machine may stall a while
_FLASH = 3.0  # [s] that writing takes at most
_SLOW = 0.5  # [s] for a calibration, which averages


class Settings:
    """Requests to a board. Base of `Board`.

    All raise `RequestError` when the board refuses or does not answer, `BoardError` when the line
    is lost, and `ProtocolError` for values that do not fit into the message.
    """

    _exchange: Exchange

    def request(
        self, name: str, values: Mapping[str, Any], *, timeout: float = TIMEOUT, tries: int = TRIES
    ) -> Mapping[str, Any]:
        """Send a request, return the values of its answer.

        Args:
            name: Name of the message.
            values: Its values.
            timeout: For each try, [s].
            tries: How often to ask.
        """
        return self._exchange.request(name, values, timeout=timeout, tries=tries)

    def get_parameter(self, parameter: ParameterId | int, index: int = 0) -> int:
        """Return a parameter, in units of the protocol."""
        asked = {"id": int(parameter), "index": index}
        reply = self.request("PARAM_GET", asked, timeout=_PATIENCE)
        if reply["code"]:
            raise RequestError(
                self._exchange.name,
                self._exchange.port,
                "PARAM_GET",
                f"no parameter {parameter!r} with index {index}",
                code=int(reply["code"]),
            )
        return int(reply["value"])

    def set_parameter(self, parameter: ParameterId | int, index: int, value: int) -> None:
        """Set a parameter until the next reset; see `save_parameters`."""
        told = {"id": int(parameter), "index": index, "value": int(value)}
        self.request("PARAM_SET", told, timeout=_PATIENCE)

    def save_parameters(self) -> None:
        """Keep the parameters over power cycles."""
        self.request("PARAM_SAVE", {}, timeout=_FLASH, tries=2)

    def get_limits(self) -> Mapping[str, Any]:
        """Return the limits in force, as in the message LIMITS."""
        return self.request("LIMITS_GET", {}, timeout=_PATIENCE)

    def calibrate(
        self, action: int, channels: Sequence[int], values: Sequence[int] | None = None
    ) -> None:
        """Take what is measured now as known; the board must be disarmed.

        Args:
            action: `CalibrateAction`.
            channels: Of muscles, or of joints, as the action says.
            values: What is true there, in the unit that the action says; None where it needs
                none.
        """
        given = [0] * len(channels) if values is None else [int(value) for value in values]
        message = {
            "action": int(action),
            "mask": mask_of(channels),
            "value": [value for _, value in sorted(zip(channels, given, strict=True))],
        }
        self.request("CALIBRATE", message, timeout=_SLOW)
