"""Zero points and offsets of a robot's sensors: measured, set, checked and reported."""
