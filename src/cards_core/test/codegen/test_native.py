"""The cache of compiled models: reuse, damage, races, no compiler, broken compiler."""

import ast
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import cards_core
from cards_core.codegen.cache import cache_folder, publish, source_digest
from cards_core.codegen.toolchain import find_compiler
from cards_core.dynamics import make_dynamics
from cards_core.errors import CompilationError
from random_robots import random_robot

needs_compiler = pytest.mark.skipif(
    find_compiler() is None, reason="no C compiler on this machine"
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CFLAGS", "-O0")
    return tmp_path / "cache"


@pytest.fixture
def robot():
    return random_robot(5, n_links=2, n_muscles=2, kinds=("revolute",))


def lengths(dynamics):
    q = np.full(dynamics.tree.nq, 0.3)
    return dynamics.update(q, np.zeros(dynamics.tree.nv)).muscle_lengths.copy()


@needs_compiler
def test_second_load_comes_from_the_cache(cache, robot):
    first = make_dynamics(robot)
    second = make_dynamics(robot)
    assert not first.report.cached
    assert second.report.cached
    assert first.report.instructions > 0
    np.testing.assert_array_equal(lengths(first), lengths(second))
    assert [p.name for p in cache.iterdir()] == [first.report.path.name]


@needs_compiler
@pytest.mark.parametrize("damage", ["truncate", "flip", "no json", "bad json", "wrong json"])
def test_damaged_cache_is_rebuilt(cache, robot, damage):
    first = make_dynamics(robot)
    expected = lengths(first)
    folder = first.report.path
    # copy away: the library mapped into this process must not change under it
    shutil.copytree(folder, cache / "keep")
    shutil.rmtree(folder)
    shutil.copytree(cache / "keep", folder)
    library = folder / "model.so"
    data = bytearray(library.read_bytes())
    if damage == "truncate":
        library.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[len(data) // 2] ^= 0xFF
        library.write_bytes(data)
    elif damage == "no json":
        (folder / "model.json").unlink()
    elif damage == "bad json":
        (folder / "model.json").write_text('{"kernels": {')
    else:
        meta = json.loads((folder / "model.json").read_text())
        del meta["kernels"]
        (folder / "model.json").write_text(json.dumps(meta))
    rebuilt = make_dynamics(robot)
    assert not rebuilt.report.cached
    np.testing.assert_array_equal(lengths(rebuilt), expected)
    assert make_dynamics(robot).report.cached


@needs_compiler
def test_two_processes_compile_at_once(cache, robot):
    script = textwrap.dedent("""
        import sys, numpy as np
        from random_robots import random_robot
        from cards_core.dynamics import make_dynamics
        d = make_dynamics(random_robot(5, n_links=2, n_muscles=2, kinds=("revolute",)))
        state = d.update(np.full(d.tree.nq, 0.3), np.zeros(d.tree.nv))
        print(state.muscle_lengths.tobytes().hex())
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    results = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert results == {lengths(make_dynamics(robot)).tobytes().hex()}
    assert [p for p in cache.iterdir() if p.name.startswith(".")] == []


def test_without_a_compiler_casadi_evaluates_and_says_so(cache, robot, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.warns(RuntimeWarning, match="no C compiler found") as warnings:
        dynamics = make_dynamics(robot)
    assert len(warnings) == 1
    assert dynamics.report.path is None
    expected = lengths(make_dynamics(robot, "numeric"))
    np.testing.assert_allclose(lengths(dynamics), expected, atol=1e-12)


def test_broken_compiler_is_reported_with_its_words(cache, robot, monkeypatch, tmp_path):
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho 'internal compiler error' >&2\nexit 4\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    with pytest.raises(CompilationError, match="internal compiler error"):
        make_dynamics(robot)
    assert list(cache.iterdir()) == []


@needs_compiler
def test_loading_a_cached_model_needs_neither_casadi_nor_scipy(cache, robot):
    """Gazebo embeds the system's Python, where casadi is not installed."""
    make_dynamics(robot)
    script = textwrap.dedent("""
        import sys
        for name in ("casadi", "scipy", "sympy", "rclpy", "gz", "mujoco"):
            sys.modules[name] = None
        from random_robots import random_robot
        from cards_core.dynamics import make_dynamics
        d = make_dynamics(random_robot(5, n_links=2, n_muscles=2, kinds=("revolute",)))
        assert d.report.cached
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("CARDS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "cards"


@needs_compiler
def test_the_cache_serves_machines_without_a_compiler(cache, robot, monkeypatch):
    expected = lengths(make_dynamics(robot))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    dynamics = make_dynamics(robot)
    assert dynamics.report.cached
    np.testing.assert_array_equal(lengths(dynamics), expected)


@needs_compiler
@pytest.mark.parametrize("obstacle", ["file", "under a file", "dangling link"])
def test_an_unusable_cache_is_worked_around_and_told(tmp_path, monkeypatch, robot, obstacle):
    place = tmp_path / "cache"
    if obstacle == "dangling link":
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.write_text("")
    folder = place / "below" if obstacle == "under a file" else place
    monkeypatch.setenv("CARDS_CACHE", str(folder))
    monkeypatch.setenv("CFLAGS", "-O0")
    with pytest.warns(RuntimeWarning, match="CARDS_CACHE"):
        dynamics = make_dynamics(robot)
    expected = lengths(make_dynamics(robot, "numeric"))
    np.testing.assert_allclose(lengths(dynamics), expected, atol=1e-12)


@needs_compiler
def test_a_changed_layout_is_not_believed(cache, robot):
    """A smaller output in the layout would make the library write past its buffer."""
    folder = make_dynamics(robot).report.path
    meta = json.loads((folder / "model.json").read_text())
    meta["kernels"]["update"]["outputs"][0][1] = [0, 0]
    (folder / "model.json").write_text(json.dumps(meta))
    assert not make_dynamics(robot).report.cached
    assert make_dynamics(robot).update(np.zeros(2), np.zeros(2)).mass_matrix.shape == (2, 2)


@needs_compiler
def test_a_build_that_comes_second_leaves_the_first_in_place(cache, robot):
    folder = make_dynamics(robot).report.path
    inode = (folder / "model.so").stat().st_ino
    work = cache / ".build-late"
    shutil.copytree(folder, work)
    publish(work, folder, lambda place: True)
    assert (folder / "model.so").stat().st_ino == inode


def test_the_key_knows_every_module_that_decides_what_the_code_computes(monkeypatch):
    """What a counted module imports from any package is counted too, or old code stays."""
    package = Path(cards_core.__file__).parent
    counted = set()
    read_bytes = Path.read_bytes

    def note(path):
        counted.add(path.relative_to(package).as_posix())
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", note)
    source_digest()
    monkeypatch.undo()
    imported = set()
    for name in counted:
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse((package / name).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                module = node.module.removeprefix("cards_core.").replace(".", "/")
                imported |= {module, *(f"{module}/{item.name}" for item in node.names)}
    files = {
        path.relative_to(package).as_posix()
        for path in package.glob("*/**/*.py")
        if path.relative_to(package).with_suffix("").as_posix() in imported
    }
    assert len(files) > 50
    assert files <= counted
