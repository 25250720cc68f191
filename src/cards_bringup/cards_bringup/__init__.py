"""Bringing a robot up: launch files, node lists and the ``./cards`` command."""
