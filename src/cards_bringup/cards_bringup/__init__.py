"""Launch files, node lists and the ``./cards`` command."""
