"""What can go wrong before CARDS runs."""


class SetupError(Exception):
    """The environment cannot be made or used; the message says how to mend that."""
