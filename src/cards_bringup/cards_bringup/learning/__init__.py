"""What ``./cards learn`` shows of a run."""
