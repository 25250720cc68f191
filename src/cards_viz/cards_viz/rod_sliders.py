"""Groups of sliders that command and, while nobody moves them, show what is the case."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import viser

from cards_core.typing import Array

TOUCHED = 0.8
"""Time after the last touch in which a group shows what its user wants, not what is, [s]."""


@dataclass(frozen=True)
class Axis:
    """One slider.

    Attributes:
        label: Shown beside it.
        lower, upper: Its ends, in SI units.
        factor: Shown value by SI value.
        step: In shown units.
        hint: Explains it under the mouse.
        fixed: Whether it shows only.
    """

    label: str
    lower: float
    upper: float
    factor: float
    step: float
    hint: str = ""
    fixed: bool = False

    @property
    def low(self) -> float:
        """Lower end as shown."""
        return self.nearest(self.lower)

    @property
    def high(self) -> float:
        """Upper end as shown."""
        return self.nearest(self.upper)

    def nearest(self, value: float) -> float:
        """Return the shown value nearest to one in SI units: a multiple of the step.

        Rounded to the digits of the step: a page shows all digits that a number has.
        """
        steps = round(self.factor * value / self.step)
        return round(steps * self.step, max(0, math.ceil(-math.log10(self.step)) + 1))


class SliderGroup:
    """Sliders for the entries of one vector.

    A touched slider changes its own entry; the others keep the exact values of what was shown
    last, not those that the sliders have been rounded to.

    Args:
        gui: Where to add the sliders, at the present place of the layout.
        axes: One for each entry.
        send: Called with the whole vector, in SI units, when a user moves a slider.
    """

    def __init__(
        self, gui: viser.GuiApi, axes: Sequence[Axis], send: Callable[[Array], None]
    ) -> None:
        self._axes = tuple(axes)
        self._send = send
        self._touched = -TOUCHED
        self.values = np.array([np.clip(0.0, axis.lower, axis.upper) for axis in axes])
        self.sliders = []
        for i, axis in enumerate(axes):
            slider = gui.add_slider(
                axis.label,
                min=axis.low,
                max=axis.high,
                step=axis.step,
                initial_value=self._rounded(i),
                hint=axis.hint or None,
                disabled=axis.fixed,
            )
            slider.on_update(lambda event, i=i: self._moved(i, event.client is not None))
            self.sliders.append(slider)

    def _rounded(self, i: int) -> float:
        axis = self._axes[i]
        return float(min(max(axis.nearest(float(self.values[i])), axis.low), axis.high))

    def _moved(self, i: int, by_user: bool) -> None:
        # values that we set ourselves are no commands
        if not by_user:
            return
        self._touched = time.monotonic()
        self.values = self.values.copy()
        self.values[i] = float(self.sliders[i].value) / self._axes[i].factor
        self._send(self.values)

    def forget(self) -> None:
        """Follow again at once, e.g. because another control commands the same."""
        self._touched = -TOUCHED

    @property
    def busy(self) -> bool:
        """Whether a user has just moved one of them."""
        return time.monotonic() - self._touched < TOUCHED

    def follow(self, values: Array) -> None:
        """Show values, shape (a,), SI units, unless a user is moving a slider."""
        if self.busy or not np.isfinite(values).all():
            return
        self.values = np.array(values, dtype=float)
        for i, slider in enumerate(self.sliders):
            shown = self._rounded(i)
            if abs(shown - slider.value) > 0.5 * self._axes[i].step:
                slider.value = shown
