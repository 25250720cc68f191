"""What drives a real robot needs no test bench, and no package or module imports in a circle."""

import ast
import graphlib
import pkgutil
from pathlib import Path

import cards_hardware

FOLDER = Path(cards_hardware.__file__).parent

BASE = {"errors", "histogram", "percentiles", "real_time"}
"""Modules that any package may use."""

USES = {
    "protocol": set(),
    "boards": {"protocol"},
    "bridge": {"boards", "protocol"},
    "calibration": {"boards", "protocol"},
    "monitor": {"boards", "protocol"},
    "hil": {"boards", "protocol"},
    "firmware_check": {"protocol"},
}
"""Package to the packages it may use; nobody may use ``hil`` and ``firmware_check``."""


def import_graph():
    """Return module to the modules of this package that it imports, wherever the import stands."""
    names = {m.name for m in pkgutil.walk_packages([str(FOLDER)], "cards_hardware.")}
    graph = {}
    for name in names:
        path = FOLDER.joinpath(*name.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        found = graph[name] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    if inner in names or node.module in names:
                        found.add(inner if inner in names else node.module)
    return graph


def package(module):
    return module.split(".")[1]


def package_graph(graph):
    packages = {package(name): set() for name in graph}
    for name, imported in graph.items():
        packages[package(name)] |= {package(other) for other in imported} - {package(name)}
    return packages


def test_production_never_imports_the_test_bench():
    for name, imported in import_graph().items():
        if package(name) in ("hil", "firmware_check"):
            continue
        bench = {other for other in imported if package(other) in ("hil", "firmware_check")}
        assert not bench, f"{name} imports {sorted(bench)}"


def test_every_package_uses_only_what_lies_below():
    packages = package_graph(import_graph())
    packages.pop("executables")  # names modules, imports none
    assert set(packages) == {*BASE, *USES}
    for name, used in packages.items():
        allowed = {*BASE, *USES.get(name, set())}
        assert used <= allowed, f"{name} uses {sorted(used - allowed)}"
    for name, allowed in USES.items():
        assert allowed <= packages[name], (
            f"{name} no longer uses {sorted(allowed - packages[name])}"
        )


def test_there_is_no_circle_of_packages_or_modules():
    graph = import_graph()
    assert len(graph) > 40
    for one in (graph, package_graph(graph), USES):
        graphlib.TopologicalSorter(one).prepare()  # raises CycleError
