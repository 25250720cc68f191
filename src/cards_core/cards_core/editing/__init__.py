"""Editing the muscles of a robot: operations, undo, the file, and what can be seen live."""
