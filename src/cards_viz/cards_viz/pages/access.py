"""Who may look at a page, and who may command: the token in its address, Host and Origin.

A page on 127.0.0.1 is not private: every other page in the user's browser can open a websocket to
it, and a name that first leads elsewhere and then to 127.0.0.1 (DNS rebinding) makes its pages
count as pages of ours. So who connects must have the token, must have asked for this machine, and
must come from the page itself. See ``docs/security.md``.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cards_core.errors import CardsError
from cards_core.files import ProcessFolder
from cards_core.permissions import private_folder

LOG = logging.getLogger(__name__)

VARIABLE = "CARDS_TOKEN"
"""Environment variable: the token of the pages of this process and of its children."""

READ_ONLY = "CARDS_READ_ONLY"
"""Environment variable: 1 if the links that this process and its children tell are those of
spectators."""

PARAMETER = "token"
"""Of the address of a page."""

REFUSALS_LOGGED = 20
"""How many different refusals are logged; a flood of others would fill the disk."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")
_ANY = ("0.0.0.0", "::", "")  # addresses that mean all of this machine


class Role(Enum):
    """Permissions of a client of a page."""

    SPECTATOR = "spectator"
    OPERATOR = "operator"


class RefusedError(Exception):
    """A request that is not answered; the message says why."""


def token() -> str:
    """Return the token of this process: that of its parent, or a new one, for its children too.

    Raises:
        CardsError: The variable `VARIABLE` holds something else.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        given = os.environ[VARIABLE] = secrets.token_urlsafe(24)
    if not _TOKEN.fullmatch(given):
        raise CardsError(
            f"{VARIABLE} is not a token (expected: 16 to 128 letters, digits, - or _; or unset, "
            "for one at random)"
        )
    return given


def spectator_token(of: str) -> str:
    """Return the token that lets somebody look on, of the one that lets somebody command.

    HMAC-SHA-256 of a fixed text under the token: nobody finds the token from it.
    """
    return hmac.new(of.encode(), b"spectator", hashlib.sha256).hexdigest()[:32]


def read_only() -> bool:
    """Tell whether the links that are told let people look on and not command.

    Raises:
        CardsError: The variable `READ_ONLY` holds something else than 0 or 1.
    """
    given = os.environ.get(READ_ONLY, "")
    if given not in ("", "0", "1"):
        raise CardsError(f"{READ_ONLY} is '{given}' (expected: 0, 1, or unset)")
    return given == "1"


def reachable_host(host: str) -> str:
    """Return an address under which a browser reaches a server on ``host``.

    For the addresses that mean all of this machine it is the one that leads to the network.
    """
    if host not in _ANY:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: asks the system for the way there
            return str(probe.getsockname()[0])
        except OSError:  # no network
            return socket.gethostname()


def page_url(host: str, port: int, given: str | None = None) -> str:
    """Return the address of a page, with the token.

    Args:
        host: The address it listens on.
        port: Its port.
        given: The token; default `token`, or that of spectators if this process is `read_only`.
    """
    if given is None:
        given = spectator_token(token()) if read_only() else token()
    name = reachable_host(host)
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/?{PARAMETER}={given}"


def tell_link(url: str, spectator_url: str) -> tuple[Path, Callable[[], None]]:
    """Tell the links of a node's page to who started the node, and to nobody else.

    Not in a log: others read it, and everybody in the network the topic ``/rosout``. The links
    are written to the terminal of the process, however its output is redirected, if it has one.
    What nodes that were killed have left is removed.

    Returns:
        A file with the links that this user alone can read, and what removes it.
    """
    text = f"{url}\n" if read_only() else f"{url}\nspectators: {spectator_url}\n"
    folder = ProcessFolder("page", str(private_folder()))
    file = folder.path / f"page-{page_port(url)}"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    with contextlib.suppress(OSError), open("/dev/tty", "w", encoding="utf-8") as terminal:
        terminal.write(f"open {text}")
    return file, folder.close


def page_port(url: str) -> int:
    """Return the port in the address of a page. Raises `CardsError` if it has none."""
    port = urlsplit(url).port
    if port is None:
        raise CardsError(f"{url.partition('?')[0]} has no port (expected: the address of a page)")
    return port


def network_note(host: str) -> str:
    """Return what to tell somebody whose page others can reach; empty for this machine alone.

    Empty as well if its link is the spectators' anyway.
    """
    if read_only():
        return ""
    if host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
        return ""
    return (
        "the page can be reached from the network, unencrypted: who has its link can command the "
        "robot (docs/security.md); link for spectators: "
    )


@dataclass(frozen=True)
class Access:
    """Decides about the requests to one page.

    Attributes:
        host: The address it listens on.
        token: The token that lets somebody command.
    """

    host: str
    token: str = field(repr=False)  # what is printed of objects ends up in logs

    def role(self, path: str, host: str | None, origin: str | None, *, socket: bool) -> Role:
        """Return what a request may do.

        Args:
            path: Of the request, with its query.
            host: Its header ``Host``.
            origin: Its header ``Origin``.
            socket: Whether it opens a websocket, which can command; else it fetches the page.

        Raises:
            RefusedError: The request is for another machine, comes from another page, or has no
                token or a wrong one.
        """
        if not _is_ours(host, self.host):
            raise RefusedError(f"Host '{_shown(host)}' is not this machine")
        # a browser sends it with every websocket, and with no plain visit of a page
        if (socket or origin is not None) and not _same_origin(origin, host):
            raise RefusedError(f"Origin '{_shown(origin)}' is another page than {_shown(host)}")
        try:
            given = parse_qs(urlsplit(path).query).get(PARAMETER, [""])
        except ValueError:  # "//[" and the like
            raise RefusedError("no token: the path is no address") from None
        if len(given) == 1:
            for known, role in (
                (self.token, Role.OPERATOR),
                (spectator_token(self.token), Role.SPECTATOR),
            ):
                if hmac.compare_digest(
                    given[0].encode("utf-8", "backslashreplace"), known.encode()
                ):
                    return role
        raise RefusedError("wrong token" if any(given) else "no token")


def _is_ours(host: str | None, listening: str) -> bool:
    """Tell whether a Host header names this machine.

    An address of numbers always does: DNS rebinding needs a name.
    """
    if not host:
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    own = socket.gethostname().lower()
    return _is_address(name) or name in {"localhost", listening.lower(), own, f"{own}.local"}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same_origin(origin: str | None, host: str | None) -> bool:
    """Tell whether an Origin header is that of the pages at ``host``."""
    if not origin or not host:
        return False
    scheme, _, place = origin.lower().partition("://")
    return scheme in ("http", "https") and place == host.lower()


def _shown(header: str | None) -> str:
    """Return a header as a log may show it."""
    return ascii(header or "")[1:-1][:80]


class RefusalLog:
    """Logs every kind of refusal once: browsers try again every second.

    Args:
        port: Of the page.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        """Log a refusal, unless it is known."""
        with self._lock:
            if what in self._seen or len(self._seen) >= REFUSALS_LOGGED:
                return
            self._seen.add(what)
            last = len(self._seen) == REFUSALS_LOGGED
        LOG.warning(
            "page on port %d: request refused: %s%s",
            self._port,
            what,
            " (further refusals are not logged)" if last else "",
        )
