"""Loads ``native/bodies.cc``, which reads and pulls all links of a model in one call each.

It is an extension module of the Python in Gazebo, compiled against Gazebo's headers the first time
and kept in the cache of compiled code. It needs what Gazebo's development packages bring (headers,
pkg-config), pybind11's headers in the version that the bindings were built with, and a C++
compiler. Where one of them is missing, `cards_muscle_plugin.gazebo` goes through the bindings link
by link, which gives the same numbers and takes longer.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cards_core.codegen.cache import build_folder, publish, trusted_cache
from cards_core.codegen.toolchain import COMPILE_TIMEOUT, target
from cards_core.errors import CompilationError
from cards_ros.gazebo_bindings import Bindings

NAME = "cards_gazebo_bodies"
SOURCE = Path(__file__).with_name("native") / "bodies.cc"

_CPP = ("c++", "g++", "clang++")


def load_bodies(gz: Bindings) -> Any:
    """Return the extension module, compiled if the cache does not have it.

    Args:
        gz: The bindings that it has to work with.

    Raises:
        CompilationError: Something is missing; says what.
    """
    library = Path(gz.sim.__file__)
    try:
        folder = trusted_cache(_key(library))
        if not _good(folder):
            with build_folder(folder.parent) as work:
                _compile(library, gz.sim.__name__, work)
                publish(work, folder, _good)
        return _checked(folder, gz)
    except (OSError, RuntimeError):
        pass  # the cache cannot be written, or others can write it
    with tempfile.TemporaryDirectory(prefix="cards-") as scratch:
        _compile(library, gz.sim.__name__, Path(scratch))
        # what is loaded stays mapped when its file is gone
        return _checked(Path(scratch), gz)


def _file() -> str:
    return NAME + str(sysconfig.get_config_var("EXT_SUFFIX"))


def _key(library: Path) -> str:
    """Return the key of the cache: our text, the bindings byte by byte, Python and CPU."""
    digest = hashlib.sha256(SOURCE.read_bytes())
    digest.update(library.read_bytes())
    digest.update(f"{_file()} {target()}".encode())
    return digest.hexdigest()[:32]


def _good(folder: Path) -> bool:
    try:
        digest = hashlib.sha256((folder / _file()).read_bytes()).hexdigest()
        return (folder / "model.sha256").read_text() == digest
    except OSError:
        return False


def _checked(folder: Path, gz: Bindings) -> Any:
    """Return the module in a folder; it must know the class of Gazebo's bindings."""
    path = str(folder / _file())
    loader = importlib.machinery.ExtensionFileLoader(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        module.probe(gz.sim.EntityComponentManager())
    except (ImportError, TypeError, RuntimeError) as error:
        raise CompilationError(
            f"Gazebo's bindings were built with another pybind11 than the headers here: {error}"
        ) from error
    return module


def _compile(library: Path, bindings_name: str, work: Path) -> None:
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX") or "", *_CPP))), None)
    if compiler is None:
        raise CompilationError(f"no C++ compiler found ($CXX, {', '.join(_CPP)})")
    # as the bindings are called: gz.sim8 belongs to gz-sim8, gz.sim to gz-sim
    package = bindings_name.replace(".", "-")
    environment = os.environ | {"PKG_CONFIG_PATH": os.pathsep.join(_package_folders(library))}
    found = _output(["pkg-config", "--cflags", "--libs", package], work, environment).split()
    include = sysconfig.get_path("include", vars={"base": sys.base_prefix})
    print("cards: compiling the native access to Gazebo's links, once", flush=True)
    command = [compiler, "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-o", _file()]
    command += [str(SOURCE), f"-I{include}", *_pybind11(), *found]
    _output(command, work, None)
    digest = hashlib.sha256((work / _file()).read_bytes()).hexdigest()
    (work / "model.sha256").write_text(digest)


def _package_folders(library: Path) -> Iterator[str]:
    """Yield where ``.pc`` files may be, besides the places that pkg-config knows."""
    yield from filter(None, os.environ.get("PKG_CONFIG_PATH", "").split(os.pathsep))
    for parent in library.parents[1:5]:
        if (parent / "pkgconfig").is_dir():
            yield str(parent / "pkgconfig")
        if parent.name.endswith("_vendor"):  # of ROS: each library has a folder of its own
            yield from map(str, sorted(parent.parent.glob("*_vendor/lib/pkgconfig")))
    for variable in ("CMAKE_PREFIX_PATH", "AMENT_PREFIX_PATH"):
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            if (folder := Path(prefix, "lib", "pkgconfig")).is_dir():
                yield str(folder)


def _pybind11() -> list[str]:
    """Return where the headers of pybind11 are, if a Python package or ROS has them."""
    places = [Path(sys.base_prefix, "include")]
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        places.append(Path(prefix, "include"))
    return [f"-I{place}" for place in places if (place / "pybind11" / "pybind11.h").is_file()][:1]


def _output(command: list[str], work: Path, environment: dict[str, str] | None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationError(f"{command[0]}: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        wrong = next((line for line in said if "error" in line), said[0] if said else "failed")
        raise CompilationError(f"{Path(command[0]).name}: {wrong}")
    return done.stdout
