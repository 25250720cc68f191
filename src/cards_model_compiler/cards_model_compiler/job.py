"""Compilations in processes of their own, and the parameters they take from a node; no ROS.

CasADi keeps Python's lock for seconds while it makes expressions, so a node that compiled in a
thread would fall silent. A process can also be stopped at any time, and gives its memory back.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from cards_core.errors import CardsError
from cards_core.parameters.declaration import Parameter, ParameterStore

_SCRIPT = "import sys; from cards_model_compiler.command import main; sys.exit(main())"

END_TIME = 5.0
"""How long a compilation that is told to end may clean up, [s]."""


class CompileFailedError(CardsError):
    """A compilation that did not succeed; its message is that of the program."""


class CompileJob:
    """Compiles one robot; a thread waits for the result.

    Args:
        model: Name or path of the robot.
        options: Arguments of the command ``compile``.

    Attributes:
        model: As given.
    """

    def __init__(self, model: str, options: Sequence[str] = ()) -> None:
        self.model = model
        self._report: dict[str, Any] | None = None
        self._problem = ""
        # what this process can import, its child can
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SCRIPT, "--json", *options, "--", model],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the node, which then ends the job
        )
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        out, errors = self._process.communicate()
        try:
            (report,) = json.loads(out)["models"]
            self._report = report
        except (ValueError, KeyError, TypeError):
            lines = errors.strip().splitlines()
            last = lines[-1] if lines else f"exit code {self._process.returncode}"
            self._problem = last.removeprefix("error: ")

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return not self._thread.is_alive()

    def result(self) -> dict[str, Any]:
        """Wait for the report, see `cards_model_compiler.compiling.compile_robot`.

        Raises:
            CompileFailedError: It failed.
        """
        self._thread.join()
        if self._report is None:
            raise CompileFailedError(f"{self.model}: {self._problem}")
        return self._report

    def stop(self) -> None:
        """End it, and its C compiler; nothing is left in the cache."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.done:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._thread.join(END_TIME)


def parameters() -> list[Parameter]:
    """Return all parameters of the node."""
    return [
        Parameter(
            "model",
            "roboy_arm",
            "Robot: name of a folder in models/, or path of an SDF; for the next ~/compile.",
            live=True,
        ),
        Parameter(
            "emit", "M,C,G,l,L", "Quantities to compile, as of ./cards compile --help.", live=True
        ),
        Parameter(
            "precision",
            "double",
            "Precision of the numbers.",
            choices=("double", "single"),
            live=True,
        ),
        Parameter("batch", False, "Also compile code for many states at once.", live=True),
        Parameter("force", False, "Recompile even if cached.", live=True),
    ]


def compile_options(values: ParameterStore) -> list[str]:
    """Return the arguments of the command ``compile`` for the values of the parameters."""
    options = [f"--emit={values['emit']}", f"--precision={values['precision']}", "--nodes"]
    return options + [f"--{name}" for name in ("batch", "force") if values[name]]


def error_text(kind: str, message: str) -> str:
    """Return the answer of a service that has failed, as JSON."""
    return json.dumps({"error": {"type": kind, "message": message}})
