"""The firmware's own C, compiled for this machine and tried against damaged lines."""
