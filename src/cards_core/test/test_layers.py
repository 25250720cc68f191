"""The core stays pure and layered: no ROS, Gazebo or MuJoCo in it, and no circle of imports."""

import ast
import graphlib
import pkgutil
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest

import cards_core

FORBIDDEN = ("rclpy", "gz", "mujoco", "sensor_msgs", "viser", "launch")

FOLDER = Path(cards_core.__file__).parent

BASE = {
    "checks",
    "cores",
    "errors",
    "exit_codes",
    "executable",
    "files",
    "foreign_files",
    "json_values",
    "named_files",
    "names",
    "permissions",
    "plugins",
    "saved_states",
    "shared_files",
    "spatial",
    "stamps",
    "table_files",
    "typing",
    "yaml_fields",
}
"""Modules that any package may use."""

USES = {
    "codegen": set(),
    "parameters": set(),
    "robot": {"parameters"},
    "optimize": set(),
    "paths": {"codegen", "robot"},
    "dynamics": {"codegen", "paths", "robot"},
    "muscles": {"codegen", "dynamics", "parameters", "paths", "robot"},
    "trajectories": {"robot"},
    "body_image": {"codegen", "muscles", "dynamics", "paths", "robot"},
    "control": {
        "body_image",
        "codegen",
        "dynamics",
        "estimation",
        "muscles",
        "optimize",
        "parameters",
        "robot",
        "trajectories",
    },
    "loop": {
        "control",
        "dynamics",
        "formats",
        "muscles",
        "parameters",
        "paths",
        "robot",
        "trajectories",
    },
    "embedded": {
        "body_image",
        "codegen",
        "control",
        "dynamics",
        "muscles",
        "optimize",
        "robot",
        "trajectories",
    },
    "formats": {"dynamics", "muscles", "parameters", "paths", "robot", "trajectories"},
    "analysis": {
        "codegen",
        "dynamics",
        "formats",
        "muscles",
        "optimize",
        "parameters",
        "paths",
        "robot",
    },
    "editing": {"analysis", "dynamics", "formats", "parameters", "paths", "robot"},
    "estimation": {"analysis", "codegen", "dynamics", "robot"},
    "rods": {"analysis", "codegen", "formats", "robot"},
    "tensegrity": {"analysis", "dynamics", "formats", "optimize", "parameters", "robot"},
}
"""Package to the packages it may use."""


def module_names():
    return [m.name for m in pkgutil.walk_packages([str(FOLDER)], "cards_core.")]


def import_graph():
    """Return module to the modules of the core that it imports, wherever the import stands."""
    names = {"cards_core", *module_names()}
    graph = {}
    for name in names:
        path = FOLDER.joinpath(*name.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        found = graph[name] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom) and node.module in names:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found.add(inner if inner in names else node.module)
    return graph


def package(module):
    return module.split(".")[1] if "." in module else ""


def package_graph(graph):
    """Return package, or module of the base, to what it imports of the others."""
    packages = {package(name): set() for name in graph}
    for name, imported in graph.items():
        packages[package(name)] |= {package(other) for other in imported} - {package(name)}
    return packages


def circle(graph):
    """Return a circle of a graph, empty if it has none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]
    return []


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
    files = list(FOLDER.rglob("*.py"))
    assert len(files) > 100
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] not in FORBIDDEN, f"{file} imports {name}"


def test_every_package_uses_only_what_lies_below():
    packages = package_graph(import_graph())
    assert set(packages) == {"", *BASE, *USES}
    for name, used in packages.items():
        allowed = {"", *BASE, *USES.get(name, set())}  # "" has the version
        assert used <= allowed, f"{name} uses {sorted(used - allowed)}"
    for name, allowed in USES.items():
        assert allowed <= packages[name], (
            f"{name} no longer uses {sorted(allowed - packages[name])}"
        )


def test_there_is_no_circle_of_packages_or_modules():
    graph = import_graph()
    assert circle(graph) == []
    assert circle(package_graph(graph)) == []
    assert circle(USES) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("cards_core.robot.model", "cards_core.control.base"),
        ("cards_core.robot.elements", "cards_core.robot.model"),
        ("cards_core.spatial", "cards_core.paths.layout"),
    ],
)
def test_a_circle_that_is_put_in_is_found(module, imported):
    graph = import_graph()
    graph[module].add(imported)
    found = circle(graph)
    assert found[0] == found[-1]
    assert all(after in graph[before] for before, after in pairwise(found))
    assert (module, imported) in set(pairwise(found))


def test_an_import_in_a_function_counts(tmp_path, monkeypatch):
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "a.py").write_text("def f():\n    from cards_core.b import g\n")
    (tmp_path / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cards_core.a\ng = 1\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "FOLDER", tmp_path)
    assert sorted(set(circle(import_graph()))) == ["cards_core.a", "cards_core.b"]
