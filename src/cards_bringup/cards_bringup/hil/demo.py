"""What ``./cards demo ROBOT --hil`` runs."""

from __future__ import annotations

from typing import Any

from cards_bringup.hil import results
from cards_bringup.hil.run import HilRun


class HilDemo(HilRun):
    """A run whose logs and summary are brought into the form of a run in simulation."""

    def results(self, *, stopped: bool) -> dict[str, Any]:
        """Rewrite the logs, draw the delays; return what to add to the summary.

        Args:
            stopped: Whether the user ended the run.

        Raises:
            CardsError: A log is missing or holds nothing of the run.
        """
        assert self.plan is not None
        alignment = results.align(self.folder, self.plan, self.overrides)
        results.plot(self.folder)
        found = results.extras(self.folder, self.firmware, self.status, self.said, alignment)
        added = results.findings(self.folder, found, stopped=stopped)
        return {"simulator": "hardware in the loop", "hil": found, **added}
