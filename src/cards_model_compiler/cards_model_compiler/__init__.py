"""Compiles robots to native code, by a command and a node; analyses running robots live."""
