"""The core stays pure: no ROS, Gazebo or MuJoCo import anywhere in it."""

import ast
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import cards_core

FORBIDDEN = ("rclpy", "gz", "mujoco", "sensor_msgs", "viser", "launch")


def module_names():
    folder = Path(cards_core.__file__).parent
    return [m.name for m in pkgutil.walk_packages([str(folder)], "cards_core.")]


def test_core_imports_with_the_hosts_blocked():
    script = textwrap.dedent(f"""
        import importlib, sys
        for name in {FORBIDDEN!r}:
            sys.modules[name] = None
        for name in {module_names()!r}:
            importlib.import_module(name)
    """)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_no_module_of_the_core_names_a_host_in_an_import():
    for file in Path(cards_core.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] not in FORBIDDEN, f"{file} imports {name}"
