"""The declarations in cards_ros.interface agree with what the nodes create and publish."""

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_ros import topics
from cards_ros.interface import DIAGNOSTICS, ROD_SERVICES, ROD_TOPICS, SERVICES, TOPICS

pytestmark = pytest.mark.ros
SOURCES = Path(__file__).parents[2]
CALLS = {
    "create_publisher",
    "create_subscription",
    "create_service",
    "HotPublisher",
    "HotSubscription",
}
NOT_NAMES = {topics.ROD_SOLVER}  # a node
KEPT_BY = ("cards_ros", "cards_sim", "cards_hardware", "cards_model_compiler", "controllers")
KEPT_BY += ("cards_rods", "cards_rod_plugin", "cards_muscle_plugin")


def modules():
    for package in KEPT_BY:
        for file in sorted((SOURCES / package / package).rglob("*.py")):
            if file.name not in ("testing.py", "interface.py"):
                yield file, ast.parse(file.read_text())


def name_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def constant(node):
    """Name of the constant of `topics` that an argument is, or None."""
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "topics":
        return node.attr
    return None


def created():
    """Types with which each constant is used where a topic or service is created."""
    found = {}
    for file, tree in modules():
        for call in (one for one in ast.walk(tree) if isinstance(one, ast.Call)):
            if name_of(call) not in CALLS:
                continue
            names = [name for arg in call.args if (name := constant(arg))]
            kinds = [
                arg.id for arg in call.args if isinstance(arg, ast.Name) and arg.id[0].isupper()
            ]
            for name in names:
                if not name.endswith("_QOS") and kinds:
                    kind = "service" if name_of(call) == "create_service" else "topic"
                    found.setdefault((kind, name), []).append((kinds[0], file.name))
    return found


def test_every_name_is_declared():
    names = {
        value
        for key, value in vars(topics).items()
        if key.isupper() and isinstance(value, str) and value not in NOT_NAMES
    }
    declared = {one.name for one in (*TOPICS, *ROD_TOPICS, *SERVICES, *ROD_SERVICES)}
    assert names == declared


def test_types_are_those_of_the_nodes():
    found = created()
    assert len(found) > 20
    for (kind, name), uses in found.items():
        value = getattr(topics, name)
        declared = (TOPICS + ROD_TOPICS) if kind == "topic" else (SERVICES + ROD_SERVICES)
        types = [
            one.type if isinstance(one.type, tuple) else (one.type,)
            for one in declared
            if one.name == value
        ]
        assert types, f"{name} is no {kind} in cards_ros.interface"
        known = {full.partition("/")[2] for group in types for full in group}
        for used, file in uses:
            assert used in known, f"{file}: {name} has type {used}, declared: {known}"


def written_keys(tree):
    """Keys that a module writes into statuses, as far as they are constants."""
    keys = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = ast.unparse(node.func.value)
            status = "values" in target or node.func.attr in ("report", "ok")
            if node.func.attr in ("update", "report", "ok") and status:
                keys |= {one.arg for one in node.keywords if one.arg}
        if isinstance(node, ast.FunctionDef) and node.name in ("world_values", "loop_values"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict):
                    keys |= {one.value for one in inner.keys if isinstance(one, ast.Constant)}
    return keys


def test_keys_of_diagnostics_are_those_that_are_written():
    declared = {key for node in DIAGNOSTICS.values() for keys in node.values() for key in keys}
    plain = {key for key in declared if "<" not in key}
    written, words = set(), set()
    for _file, tree in modules():
        text = ast.unparse(tree)
        if "diagnostics" not in text and "loop_values" not in text:
            continue
        written |= written_keys(tree)
        words |= set(re.findall(r"\w+", text))
    assert len(written) > 50
    assert written <= declared, "declare them in cards_ros.interface.DIAGNOSTICS"
    assert plain <= words, "no node writes them"
