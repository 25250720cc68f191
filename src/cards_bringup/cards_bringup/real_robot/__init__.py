"""Dialogues with a real robot: calibration and monitor."""
