"""SDF with muscles: reader and writer."""
