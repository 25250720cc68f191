"""Who watches a run: it begins when its pages can be seen, and tells them how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cards_core.errors import CardsError

PAGE_PATIENCE = 10.0
"""Time for which a run waits for somebody to open a page that answers, [s]."""

VIEW_PATIENCE = 60.0
"""Time for which it waits for its pages to answer, [s]."""


@dataclass(frozen=True)
class Audience:
    """The pages of a run, and what waits for them.

    Attributes:
        pages: Full name of each view to the address of its page.
        controllers: Full names of the controllers that are enabled when the run begins; they were
            started without ``autostart``.
        meanwhile: Called while the pages start.
        page_patience: See `PAGE_PATIENCE`.
        view_patience: See `VIEW_PATIENCE`.
    """

    pages: Mapping[str, str]
    controllers: Sequence[str] = ()
    meanwhile: Callable[[], None] = lambda: None
    page_patience: float = PAGE_PATIENCE
    view_patience: float = VIEW_PATIENCE


class Opening:
    """The time until a run begins: up come the pages, then the controllers are enabled.

    It knows no clock, so that tests need none: `wait` is told the time.

    Args:
        audience: Whom to wait for.
        note: Told what the user should know, a line each.
    """

    def __init__(self, audience: Audience, note: Callable[[str], None]) -> None:
        self._audience = audience
        self._note = note
        self._up: set[str] = set()
        self._since: float | None = None
        self._begun: float | None = None

    @property
    def up(self) -> bool:
        """Whether all pages answer, or no longer will."""
        return self._since is not None

    def look(self, now: float, watching: Mapping[str, int], gone: set[str]) -> bool:
        """Take over what is known of the views; return whether the run may begin.

        Args:
            now: On any clock, [s].
            watching: Of the views whose page answers, how many browsers show it.
            gone: Views whose process has ended.
        """
        pages = self._audience.pages
        if self._begun is None:
            self._begun = now
        for name, address in pages.items():
            if name in watching and name not in self._up:
                self._up.add(name)
                whose = f" ({name.rpartition('/')[0]})" if "/" in name else ""
                self._note(f"watch at {address}{whose}")
        late = now - self._begun > self._audience.view_patience
        if self._since is None and (late or pages.keys() <= self._up | gone):
            self._since = now
            if absent := sorted(pages.keys() - self._up):
                self._note(f"{', '.join(absent)}: no page; the run begins without it")
            elif not any(watching.values()):
                self._note(
                    f"the run begins when the page is open, or in {self._audience.page_patience:g}"
                    " s (--no-wait: at once)"
                )
        if self._since is None:
            return False
        nobody = not self._up or now - self._since > self._audience.page_patience
        return nobody or any(watching.values())


@dataclass
class AudienceTopics:
    """The topics of an audience, on the node of a listener.

    Args:
        node: Of a `RosListener`, which spins it.
        audience: The audience.

    Attributes:
        watching: Of the views whose page answers, how many browsers show it.
    """

    node: Any
    audience: Audience
    watching: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from std_msgs.msg import Int32, String
        from std_srvs.srv import SetBool

        from cards_ros import topics

        self._request = SetBool.Request(data=True)
        self._state_type = String
        for name in self.audience.pages:
            self.node.create_subscription(
                Int32,
                topics.PAGES.replace("~", f"/{name}"),
                partial(self._on_pages, name),
                topics.LATCHED_QOS,
            )
        self._state = self.node.create_publisher(String, topics.RUN_STATE, topics.LATCHED_QOS)
        self._clients = {
            name: self.node.create_client(SetBool, topics.ENABLE_SERVICE.replace("~", f"/{name}"))
            for name in self.audience.controllers
        }
        self._calls: dict[str, Any] = {}

    def _on_pages(self, name: str, message: Any) -> None:
        self.watching[name] = message.data

    def tell(self, state: str) -> None:
        """Tell the pages what becomes of the run."""
        self._state.publish(self._state_type(data=state))

    def enable(self) -> bool:
        """Enable the controllers that are there; return whether all are enabled.

        Raises:
            CardsError: One refuses.
        """
        for name, client in self._clients.items():
            if name not in self._calls and client.service_is_ready():
                self._calls[name] = client.call_async(self._request)
        done = {name: call.result() for name, call in self._calls.items() if call.done()}
        for name, answer in done.items():
            if not answer.success:
                raise CardsError(f"controller {name} cannot begin: {answer.message}")
        return len(done) == len(self._clients)
