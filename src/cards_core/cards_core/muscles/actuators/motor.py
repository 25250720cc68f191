"""A motor with gear and spool, seen at its cable."""

from __future__ import annotations

from cards_core.robot.actuators import Motor


def parameters(motor: Motor, spool_radius: float) -> dict[str, float]:
    """Return the numbers of a step; ``n = N/r`` rotor radians per metre of cable.

    Args:
        motor: Parameters.
        spool_radius: r, [m].

    Returns:
        ``gain`` kt n: force at the cable per current [N/A] and EMF per speed [V s/m];
        ``resistance`` R25 [ohm], ``voltage`` U [V], ``max_current`` [A]; losses of the gear while
        it winds and pays out; ``dry`` [N], ``viscous`` [N s/m] and ``sharpness`` [s/m] of
        friction.
    """
    n = motor.gear_ratio / spool_radius
    return {
        "gain": motor.torque_constant * n,
        "resistance": motor.resistance,
        "voltage": motor.voltage,
        "max_current": motor.max_current,
        "winding_loss": 1.0 / motor.gear_efficiency - 1.0,
        "paying_loss": 1.0 - motor.gear_efficiency,
        "dry": motor.dry_friction * n,
        "viscous": motor.viscous_friction * n**2,
        "sharpness": n / motor.friction_speed,
    }
