"""Data of others is never unpickled or evaluated: by what the sources call, and by trying it."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.table_files import read_npz
from cards_core.yaml_fields import parse_yaml

SOURCES = Path(__file__).resolve().parents[1]

UNPICKLING = ("pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "torch")

ALLOWED = {
    # to and from processes that this one has started, or workers that were given an address
    "src/cards_learning/cards_learning/workers.py",
    # a file of the process that started Gazebo, which others must not be able to write
    "src/cards_muscle_plugin/cards_muscle_plugin/surroundings.py",
}
"""Modules that may unpickle, and why."""


def modules():
    yield from sorted(SOURCES.glob("src/*/*/**/*.py"))
    yield from sorted(SOURCES.glob("benchmarks/**/*.py"))
    yield from sorted(SOURCES.glob("examples/**/*.py"))


def name_of(call):
    """Return the dotted name that a call calls, as it is written."""
    parts, node = [], call.func
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *parts] if isinstance(node, ast.Name) else parts)


def problems(tree):
    """Yield what reads data as code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            yield from (f"import {n}" for n in names if n.split(".")[0] in UNPICKLING)
        elif isinstance(node, ast.Call):
            name = name_of(node)
            if name in ("eval", "exec", "builtins.eval", "builtins.exec"):
                yield name
            if name in ("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"):
                yield name
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                ):
                    yield f"{name}(allow_pickle=...)"


def test_problems_are_seen():
    text = (
        "import pickle\nfrom joblib import load\neval('1')\nimport yaml\nyaml.load(f)\n"
        "import numpy as np\nnp.load(f, allow_pickle=True)\nnp.load(f, allow_pickle=x)\n"
        "np.load(f, allow_pickle=False)\nmodel.eval()\n"
    )
    assert sorted(problems(ast.parse(text))) == [
        "eval",
        "import joblib",
        "import pickle",
        "np.load(allow_pickle=...)",
        "np.load(allow_pickle=...)",
        "yaml.load",
    ]


def test_no_module_reads_data_as_code():
    found, count = {}, 0
    for path in modules():
        name = path.relative_to(SOURCES).as_posix()
        if "/test/" in name:
            continue
        count += 1
        seen = sorted(set(problems(ast.parse(path.read_text(encoding="utf-8")))))
        if seen:
            found[name] = seen
    assert count > 500
    assert found.keys() == ALLOWED, found
    assert all(seen == ["import pickle"] for seen in found.values()), found


class Bomb:
    """Says that it was unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, height=np.array([Bomb()], dtype=object))
    with pytest.raises(CardsError, match="npz"):
        read_npz(path)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CardsError, match="npz"):
        read_npz(path)


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.x"])
def test_yaml_makes_no_objects(tag):
    with pytest.raises(CardsError, match=r"tag '!!python/.*objects are not made"):
        parse_yaml(f"a: {tag}")


def test_surroundings_of_others_are_not_unpickled(tmp_path, monkeypatch):
    from cards_muscle_plugin.surroundings import (
        VARIABLE,
        Surroundings,
        leave_surroundings,
        surroundings_of,
    )

    file = tmp_path / "around"
    variables = leave_surroundings(file, {"arm": Surroundings()})
    monkeypatch.setenv(VARIABLE, variables[VARIABLE])
    assert file.stat().st_mode & 0o777 == 0o600
    assert surroundings_of("arm") == Surroundings()
    file.write_bytes(pickle.dumps(Bomb()))
    file.chmod(0o666)
    with pytest.raises(PermissionError, match="all users can write it"):
        surroundings_of("arm")
