"""Actuator models, the engine that turns tensions into wrenches, and the command gate."""
