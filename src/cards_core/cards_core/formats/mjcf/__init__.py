"""MuJoCo's format: a writer."""
