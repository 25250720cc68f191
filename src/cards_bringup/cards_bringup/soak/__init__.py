"""A chaos campaign: random faults in a running system, and an observer that judges it."""
