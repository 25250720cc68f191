"""Pictures and films of robots, drawn without a window."""
