"""Identifies the board at the other end of a line, and checks it against its layout."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_hardware.boards.layout import (
    IMPEDANCE,
    NAMES,
    UNATTENDED,
    BoardLayout,
    MuscleImpedance,
    MuscleLimits,
)
from cards_hardware.boards.transport import Transport
from cards_hardware.errors import BoardError, RequestError
from cards_hardware.protocol.enums import AckCode, Caps, ParameterId
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import BROADCAST, MAJOR


@dataclass(frozen=True)
class Ident:
    """Identity of a board, from IDENT.

    Attributes:
        firmware: Version, e.g. ``1.0.2``.
        hardware: Revision.
        uid: Serial number of the processor, hexadecimal.
        muscles, joints: How many channels it has.
        caps: What it can do.
        config_crc: Checksum of its limits and parameters.
        reset_cause: Why it started last, `ResetCause`.
        boot_count: Starts so far.
        limits_loaded: Whether it has limits.
        token: For the next arm or clear request.
    """

    firmware: str
    hardware: int
    uid: str
    muscles: int
    joints: int
    caps: Caps
    config_crc: int
    reset_cause: int
    boot_count: int
    limits_loaded: bool
    token: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Ident:
        """Read the message."""
        number = int(values["firmware"])
        return cls(
            firmware=f"{number >> 16}.{number >> 8 & 255}.{number & 255}",
            hardware=int(values["hardware"]),
            uid=bytes(values["uid"]).hex(),
            muscles=int(values["muscles"]),
            joints=int(values["joints"]),
            caps=Caps(int(values["caps"])),
            config_crc=int(values["cfg_crc"]),
            reset_cause=int(values["reset_cause"]),
            boot_count=int(values["boot_count"]),
            limits_loaded=bool(values["limits_loaded"]),
            token=int(values["arm_token"]),
        )


_LIMITS_TIMEOUT = 0.5  # [s] for an answer to limits
_SETTING_TIMEOUT, _SETTING_TRIES = 0.2, 10  # [s] for an answer to a parameter; a host may be busy
_DUPLICATE_WAIT = 0.02  # [s] in which a second board with the same address would answer, too
# limits read back differ by the rounding of the protocol only
_TOLERANCES = dict.fromkeys(NAMES, 0.06) | dict.fromkeys(("length_min", "length_max"), 1e-6)
_TOLERANCES |= {"rate_max": 1e-4, "current_max": 1e-3, "slew": 1.0}


class Handshake:
    """Identifies one board, checks it, and loads its limits and impedance laws.

    Args:
        layout: What the board should be; without muscles and joints any board will do.
        transport: To the board.
        any_node: Whether to take the address of the first board that answers.

    Attributes:
        nonce: Nonce of this session, different for every session.
        ident: Newest IDENT.
        laws: Impedance laws of its muscles, those of the layout at first; every session begins
            with them.
        foreign: Frames from other nodes.
    """

    def __init__(self, layout: BoardLayout, transport: Transport, any_node: bool) -> None:
        self._layout = layout
        self._transport = transport
        self._any_node = any_node
        self.nonce = 0
        self.ident: Ident | None = None
        self.laws = layout.impedance
        self.foreign = 0
        self._other_node: int | None = None
        self._other_major: int | None = None
        self._uids: set[str] = set()

    def error(self, problem: str) -> BoardError:
        """Return an error that names the board."""
        return BoardError(self._layout.name, self._layout.port, problem)

    # What arrives (reader thread) -------------------------------------------------------------

    def belongs(self, frame: Frame) -> bool:
        """Tell whether a frame is of this board and a version that we understand."""
        if frame.major != MAJOR:
            self._other_major = frame.major
            return False
        if self._transport.node == BROADCAST and self._any_node:
            self._transport.node = frame.node
        if frame.node != self._transport.node:
            self.foreign += 1
            self._other_node = frame.node
            return False
        return True

    def identified(self, values: Mapping[str, Any]) -> None:
        """Take in an IDENT."""
        ident = Ident.of(values)
        if values["nonce"] == self.nonce:
            self._uids.add(ident.uid)
        self.ident = ident

    @property
    def doubled(self) -> str:
        """Why the board is not alone at its address; empty if it is."""
        if len(self._uids) < 2:
            return ""
        uids = " and ".join(sorted(self._uids))
        return (
            f"two boards answer as node {self._transport.node}, serial numbers {uids}: "
            "give them different addresses (parameter NODE) or ports"
        )

    # What is asked (any other thread) ---------------------------------------------------------

    def identify(self, timeout: float, *, new: bool) -> Ident:
        """Say HELLO until the board answers.

        Args:
            timeout: [s]
            new: Begin a session, as after every loss; otherwise only a new token is fetched.

        Raises:
            BoardError: No answer, or not from the board that the layout describes.
        """
        if new or not self.nonce:
            self.nonce = secrets.randbelow(2**32 - 1) + 1
            self._uids = set()
            self._other_node = self._other_major = None
        hello = {"min_major": MAJOR, "max_major": MAJOR, "nonce": self.nonce}
        tries = max(1, round(timeout / 0.2))
        try:
            values = self._transport.request("HELLO", hello, timeout=0.2, tries=tries)
        except RequestError as error:
            raise self.error(self._why_silent(error, timeout)) from None
        ident = Ident.of(values)
        if new:
            time.sleep(_DUPLICATE_WAIT)
        if self.doubled:
            raise self.error(self.doubled)
        self._check(ident)
        return ident

    def _why_silent(self, error: RequestError, timeout: float) -> str:
        major = self._other_major
        if major is not None or error.code == AckCode.VERSION:
            theirs = "another version" if major is None else f"version {major}"
            return (
                f"speaks {theirs} of the protocol, this program version {MAJOR}: flash the "
                "firmware of this release (firmware/README.md)"
            )
        if self._other_node is not None:
            return (
                f"node {self._other_node} answers, node {self._transport.node} was expected: "
                f"correct 'node' in {self._layout.source or 'the layout'} or the board's "
                "parameter NODE"
            )
        if error.code is not None:
            return str(error).split(": ", 1)[1]
        return (
            f"no answer for {timeout:g} s: is it powered, is it a muscle board, is the baud rate "
            f"{self._layout.baudrate} right?"
        )

    def _check(self, ident: Ident) -> None:
        layout = self._layout
        for kind, names in (("muscles", layout.muscles), ("joints", layout.joints)):
            count = getattr(ident, kind)
            if names and count != len(names):
                raise self.error(
                    f"has {count} {kind}, {layout.source or 'the layout'} gives it {len(names)} "
                    f"({', '.join(names)}): correct one of both (parameter {kind.upper()})"
                )
        if layout.muscles and not ident.caps & Caps.LENGTH:
            raise self.error("does not measure muscle lengths, which control needs")

    def needs(self, cap: Caps, what: str) -> None:
        """Check that the board can do something. Raises `BoardError`."""
        if self.ident is not None and not self.ident.caps & cap:
            can = [item.name for item in Caps if item in self.ident.caps]
            raise self.error(f"takes no {what} (its firmware can: {', '.join(map(str, can))})")

    def load_limits(self) -> bool:
        """Tell the board its limits, and what it does without the host that armed it.

        Returns:
            False if the board is in a state in which it takes none, and has others.

        Raises:
            RequestError: It refuses them for another reason, or does not answer.
        """
        limits = self._layout.limits
        if not limits:
            return True
        values = limits_message(limits)
        try:
            for name, parameter in UNATTENDED.items():
                self._tell(parameter, 0, getattr(self._layout.unattended, name))
            self._transport.request("LIMITS", values, timeout=_LIMITS_TIMEOUT)
        except RequestError as error:
            if error.code == AckCode.RANGE and error.detail is not None:
                raise self._limits_error(error) from None
            if error.code == AckCode.UNKNOWN:
                raise self.error(
                    f"{error.request} refused: its firmware is older than this program "
                    "(expected: the firmware of this release, firmware/README.md)"
                ) from None
            if error.code != AckCode.STATE:
                raise
            return error.request == "LIMITS" and self._has_limits(values)
        return True

    def load_impedance(self) -> None:
        """Tell the board the impedance laws of its muscles, if it has such laws.

        Raises:
            RequestError: It refuses them or does not answer.
        """
        if self.ident is None or not self.ident.caps & Caps.IMPEDANCE:
            return
        for index, law in enumerate(self.laws):
            for name in IMPEDANCE:
                self._tell_gain(index, name, getattr(law, name))

    def change_impedance(self, laws: tuple[MuscleImpedance, ...]) -> None:
        """Tell the board what differs from `laws`, which become these; all or nothing.

        Raises:
            RequestError: It refuses a number or does not answer; it was told what it had before.
            BoardError: The line was lost, or it has no impedance law.
        """
        self.needs(Caps.IMPEDANCE, "gains of an impedance law")
        told: list[tuple[int, str, float]] = []
        try:
            for index, (old, new) in enumerate(zip(self.laws, laws, strict=True)):
                for name in IMPEDANCE:
                    before, now = getattr(old, name), getattr(new, name)
                    if now != before:
                        told.append((index, name, before))  # one without an answer may act, too
                        self._tell_gain(index, name, now)
        except CardsError:
            with contextlib.suppress(CardsError):  # a lost board gets `laws` when it is back
                for index, name, before in reversed(told):
                    self._tell_gain(index, name, before)
            raise
        self.laws = laws

    def _tell_gain(self, index: int, name: str, value: float) -> None:
        self._tell(IMPEDANCE[name], index, value)

    def _tell(self, parameter: ParameterId, index: int, value: float) -> None:
        told = {"id": int(parameter), "index": index, "value": round(value / parameter.scale)}
        self._transport.request("PARAM_SET", told, timeout=_SETTING_TIMEOUT, tries=_SETTING_TRIES)

    def _limits_error(self, error: RequestError) -> BoardError:
        names = self._layout.muscles
        row = error.detail
        if row is None or row >= len(names):
            return error
        return self.error(
            f"refuses the limits of muscle '{names[row]}': {self._layout.limits[row]}; correct "
            f"them in {self._layout.source or 'the layout'}"
        )

    def _has_limits(self, values: Mapping[str, Any]) -> bool:
        ident = self.ident
        if ident is None or not ident.limits_loaded:
            return False
        there = self._transport.request("LIMITS_GET", {})
        same = (
            np.allclose(there[name], values[name], rtol=0.0, atol=_TOLERANCES[name])
            for name in NAMES
        )
        return all(same)


def limits_message(limits: tuple[MuscleLimits, ...]) -> dict[str, Any]:
    """Return the values of the message LIMITS."""
    values: dict[str, Any] = {
        name: np.array([getattr(item, name) for item in limits]) for name in NAMES
    }
    values["muscles"] = len(limits)
    return values
