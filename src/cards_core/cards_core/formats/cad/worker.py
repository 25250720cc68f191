"""The process that reads CAD files, and what talks to it.

Open CASCADE is a million lines of C++ that was not made for damaged files. It runs in a process
that forks for every file; a crash, a hang or too much memory ends the fork and is an error of
ours. Run as a module, this is that process: it reads requests, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cards_core.errors import CardsError, DescriptionError
from cards_core.files import file_problem
from cards_core.formats.cad.assembly import PLACE, Assembly, load, save

PACKAGE = "cadquery-ocp-novtk"
"""The wheel that has Open CASCADE."""

SECONDS = 120
"""Longest time for a file, [s]."""

MEMORY = 3_000_000_000
"""Address space for a file, beside that of Open CASCADE's libraries, [bytes]."""

SUFFIXES = (".step", ".stp", ".fcstd")
"""Endings of the files that are read, in lower case."""

TOLERANCE = 0.5e-3
"""Default of the largest distance of a mesh from its surface, [m]."""


class Reader:
    """Reads CAD files; a context manager, so that reading many starts one process only.

    Args:
        seconds: Longest time for a file, [s].
        memory: Address space for a file, beside that of Open CASCADE's libraries, [bytes].

    Raises:
        CardsError: Open CASCADE is not installed.
    """

    def __init__(self, *, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        if importlib.util.find_spec("OCP") is None:
            raise CardsError(
                "Open CASCADE is not installed, which reads CAD files (expected: "
                f"'./cards import cad' in a checkout installs it; else 'pip install {PACKAGE}')"
            )
        self._seconds = seconds
        self._memory = memory
        self._process: subprocess.Popen[str] | None = None

    def read(self, path: str | os.PathLike[str], *, tolerance: float = TOLERANCE) -> Assembly:
        """Return what is in a file.

        Args:
            path: A STEP file or a FreeCAD document.
            tolerance: Largest distance of a mesh from its surface, [m].

        Raises:
            DescriptionError: It cannot be read; the message names file and place.
        """
        source = Path(path)
        check_file(source, SUFFIXES)
        with tempfile.TemporaryDirectory(prefix="cards-cad-") as folder:
            request = {
                "path": str(source.absolute()),
                "shown": str(source),
                "folder": folder,
                "tolerance": tolerance,
                "seconds": self._seconds,
                "memory": self._memory,
            }
            status = self._ask(request)
            self._raise_for(status, source, Path(folder))
            return load(Path(folder))

    def _raise_for(self, status: dict[str, Any], source: Path, folder: Path) -> None:
        failure = folder / "error.json"
        if failure.exists():
            error = json.loads(failure.read_text(encoding="utf-8"))
            if error["kind"] == "description":
                raise DescriptionError(**error["arguments"])
            # a mistake of ours, not of the file
            raise RuntimeError(error["message"])
        element = _place(folder)
        if status.get("signal") in (signal.SIGALRM, signal.SIGXCPU):
            raise DescriptionError(
                f"reading it took longer than {self._seconds:g} s",
                source=str(source),
                element=element,
                expected="a smaller or simpler assembly",
            )
        if status.get("signal") is not None or status.get("exit") != 0:
            what = status.get("signal")
            name = signal.Signals(what).name if what is not None else f"exit {status.get('exit')}"
            raise DescriptionError(
                f"Open CASCADE crashed while reading it ({name})",
                source=str(source),
                element=element,
                expected="a file that was exported without damage; try to export it again",
            )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cards_core.formats.cad.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(item for item in sys.path if item),
                },
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.close()
            raise CardsError(
                "Open CASCADE cannot be started (expected: 'python -c \"import OCP\"' works; "
                f"reinstall {PACKAGE})"
            )
        out = json.loads(answer)
        assert isinstance(out, dict)
        return out

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            process.wait()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_assembly(path: str | os.PathLike[str], *, tolerance: float = TOLERANCE) -> Assembly:
    """Return what is in a CAD file; see `Reader.read`."""
    check_file(Path(path), SUFFIXES)
    with Reader() as reader:
        return reader.read(path, tolerance=tolerance)


def check_file(source: Path, suffixes: Sequence[str]) -> None:
    """Refuse what is no file with one of some endings.

    Args:
        source: The file.
        suffixes: Endings, small letters.

    Raises:
        DescriptionError: It is none, or cannot be read.
    """
    try:
        problem = file_problem(source)
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if problem is None and source.suffix.lower() not in suffixes:
        problem = f"the ending '{source.suffix}' is unknown" if source.suffix else "has no ending"
    if problem is not None:
        raise DescriptionError(
            problem, source=str(source), expected=f"a file with one of {', '.join(suffixes)}"
        )
    try:
        with source.open("rb"):
            pass
    except OSError as error:
        raise DescriptionError(
            f"cannot be read: {error.strerror or error}", source=str(source)
        ) from None


# The process -----------------------------------------------------------------------------------


def main() -> None:
    """Answer requests until there are no more."""
    # Open CASCADE prints to standard output, which the answers need
    answers = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks gets it and closes us
    from cards_core.formats.cad import freecad, step

    readers = {".step": step.read_step, ".stp": step.read_step, ".fcstd": freecad.read_freecad}
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(request, readers)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            answer: dict[str, Any] = {"signal": os.WTERMSIG(status)}
        else:
            answer = {"exit": os.WEXITSTATUS(status)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _child(request: dict[str, Any], readers: dict[str, Any]) -> None:
    """Read one file; never returns."""
    folder, code = Path(request["folder"]), 0
    tempfile.tempdir = str(folder)  # the process that asks removes it, whatever happens here
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + request["memory"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        path = Path(request["path"])
        read = readers[path.suffix.lower()]
        save(read(path, request["shown"], request["tolerance"]), folder)
    except DescriptionError as error:
        names = ("problem", "source", "line", "element", "expected")
        arguments = {name: getattr(error, name) for name in names}
        _fail(folder, {"kind": "description", "arguments": arguments})
    except MemoryError:
        arguments = {
            "problem": "reading it takes too much memory",
            "source": request["shown"],
            "expected": f"at most {request['memory'] / 1e9:g} GB",
        }
        _fail(folder, {"kind": "description", "arguments": arguments})
    except (AttributeError, NameError, ImportError, AssertionError):
        _fail(folder, {"kind": "internal", "message": traceback.format_exc()})
    except Exception as error:
        # whatever Open CASCADE's wrapper throws: the file is at fault, not the user's program
        last = traceback.extract_tb(error.__traceback__)[-1]
        arguments = {
            "problem": f"cannot be read: {type(error).__name__} in {last.name}: {error}"[:300],
            "source": request["shown"],
            "element": _place(folder),
            "expected": "a file that was exported without damage; try to export it again",
        }
        _fail(folder, {"kind": "description", "arguments": arguments})
    except BaseException:
        code = 3
    os._exit(code)


def _place(folder: Path) -> str | None:
    """Return what was being read, if anything left word of it."""
    file = folder / PLACE
    return file.read_text(encoding="utf-8") if file.exists() else None


def _fail(folder: Path, error: dict[str, Any]) -> None:
    (folder / "error.json").write_text(json.dumps(error), encoding="utf-8")


if __name__ == "__main__":
    main()
