"""Temperatures of muscles without a model of their motor: heat that goes with the tension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, cast

from cards_core.muscles.actuators import thermal
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real
from cards_core.muscles.actuators.model import Inputs, Model, Parameters
from cards_core.robot.elements import Muscle
from cards_core.typing import Array


class HeatedByTension(Model):
    """Base of the models that `heated` makes: another model, and the nodes of `thermal`.

    With the tension T the heat is ``P = k T^2``: that of a motor whose current is proportional to
    T. Nothing flows back: the tension does not depend on the temperatures.

    Attributes:
        base: The other model, whose equations hold unchanged.
    """

    base: ClassVar[type[Model]]

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        group = getattr(muscle.actuator, "thermal", None)
        assert group is not None  # only such muscles have this model
        own = {"heat": float(group.heat_per_square_force)}
        return self.base.parameters(self, muscle, dt) | thermal.parameters(group, dt) | own

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        shown = len(self.base.published)
        tension, new = self.base.step(self, m, p, self._without(x), given)
        warm = thermal.advance(p, x[shown], x[shown + 1], p.heat * tension * tension)
        return tension, [*new[:shown], *warm, *new[shown:]]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        shown, states = len(self.base.published), self.base.rest(self, lengths)
        ambient: Array = self.p.ambient
        return [*states[:shown], ambient.copy(), ambient.copy(), *states[shown:]]

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        return self.base.energy(self, self._without(x), lengths)

    def _without(self, x: Sequence[Real]) -> list[Real]:
        """Return the states of the other model."""
        shown = len(self.base.published)
        return [*x[:shown], *x[shown + len(thermal.QUANTITIES) :]]


@cache
def heated(base: type[Model]) -> type[Model]:
    """Return a model with two more states, ``winding_temperature`` and ``housing_temperature``.

    Args:
        base: A model without motor. `Model.stretch` is taken from it as it is, which sees only
            published states.
    """
    members = {
        "__doc__": f"`{base.__name__}` with temperatures, see `HeatedByTension`.",
        "base": base,
        "published": (*base.published, *thermal.QUANTITIES),
    }
    return cast("type[Model]", type(f"Heated{base.__name__}", (HeatedByTension, base), members))
