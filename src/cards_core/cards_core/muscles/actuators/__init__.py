"""Actuator models: what turns lengths, rates and commands of muscles into tensions."""

from cards_core.muscles.actuators.bank import ActuatorBank

__all__ = ["ActuatorBank"]
