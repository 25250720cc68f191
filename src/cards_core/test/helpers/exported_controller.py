"""An exported controller, compiled and called through ctypes."""

import ctypes
import os
import shutil
import subprocess

import numpy as np

from cards_core.embedded import export_controller

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")


def compiler():
    return shutil.which("cc") or shutil.which("gcc")


def built(export, folder, extra=()):
    """Return the library of an export, compiled in a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = [name for name in ("controller.c", "model.c") if name in export.files]
    build = ["-shared", "-fPIC", "-o", "controller.so", *sources, "-lm"]
    flags = [*FLAGS, *os.environ.get("CFLAGS", "").split()]  # of tests/fuzz/sanitize.py
    subprocess.run([compiler(), *flags, *extra, *build], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "controller.so"))


class Exported:
    """Builds a controller in a folder and steps it."""

    def __init__(self, controller, folder, precision="double", extra=()):
        self.export = export_controller(controller, precision=precision)
        self.library = built(self.export, folder, extra)
        real = np.float64 if precision == "double" else np.float32
        report = self.export.report
        m, j, k = (max(report[n], 1) for n in ("muscles", "motors", "velocities"))
        tasks = len(report["task"])
        state = [("time", "f8"), ("q", real, (report["coordinates"],)), ("qd", real, (k,))]
        self.state = np.zeros((), np.dtype(state, align=True))
        rows = [(name, real, (tasks,)) for name in ("y", "yd", "ydd")]
        self.reference = np.zeros((), np.dtype(rows, align=True))
        command = [
            ("tensions", real, (m,)),
            ("efforts", real, (j,)),
            ("status", "i4"),
            ("error", real, (tasks,)),
            ("residual", real),
            ("iterations", "i4"),
        ]
        self.command = np.zeros((), np.dtype(command, align=True))
        self.library.cards_init()

    def step(self, state, reference=None):
        """Return the status of a step; the command is in `command`."""
        self.state["time"] = state.time
        self.state["q"], self.state["qd"] = state.q, state.qd
        given = None
        if reference is not None:
            for name, values in zip(("y", "yd", "ydd"), reference, strict=True):
                self.reference[name] = values
            given = ctypes.c_void_p(self.reference.ctypes.data)
        at = [ctypes.c_void_p(item.ctypes.data) for item in (self.state, self.command)]
        return self.library.cards_step(at[0], given, at[1])


class ExportedSetPoints:
    """Builds a controller of set-points in a folder and steps it."""

    def __init__(self, controller, folder, precision="double", extra=()):
        self.export = export_controller(controller, precision=precision)
        self.library = built(self.export, folder, extra)
        real = np.float64 if precision == "double" else np.float32
        m = self.export.report["muscles"]
        state = [("time", "f8"), ("lengths", real, (m,)), ("tensions", real, (m,))]
        self.state = np.zeros((), np.dtype(state, align=True))
        command = [(name, real, (m,)) for name in ("tensions", "lengths", "rates")]
        self.command = np.zeros((), np.dtype([*command, ("status", "i4")], align=True))
        self.library.cards_init()

    def step(self, time, lengths=None, tensions=None):
        """Return the status of a step; the command is in `command`."""
        self.state["time"] = time
        if lengths is not None:
            self.state["lengths"], self.state["tensions"] = lengths, tensions
        at = [ctypes.c_void_p(item.ctypes.data) for item in (self.state, self.command)]
        return self.library.cards_step(*at)

    def pull(self, lengths, rates):
        """Return the tensions of the law for the last command."""
        values = [np.array(item, dtype=self.command["rates"].dtype) for item in (lengths, rates)]
        out = np.zeros_like(values[0])
        at = [ctypes.c_void_p(item.ctypes.data) for item in (self.command, *values, out)]
        self.library.cards_tensions(*at)
        return out


class ExportedRelaxation:
    """Builds muscle relaxation control in a folder and steps it."""

    def __init__(self, controller, folder, extra=()):
        self.export = export_controller(controller)
        self.library = built(self.export, folder, extra)
        m, n = (self.export.report[name] for name in ("muscles", "coordinates"))
        state = [("time", "f8"), ("q", "f8", (n,)), ("qd", "f8", (n,))]
        per_muscle = ("lengths", "rates", "tensions", "temperatures")
        state += [(name, "f8", (m,)) for name in per_muscle]
        self.state = np.zeros((), np.dtype([*state, ("has_temperatures", "i4")], align=True))
        per_muscle = ("tensions", "lengths", "wanted", "necessary", "released")
        command = [(name, "f8", (m,)) for name in per_muscle]
        command += [("status", "i4"), ("residual", "f8")]
        self.command = np.zeros((), np.dtype(command, align=True))
        self.library.cards_init()

    def step(self, state, pose=None):
        """Return the status of a step; the command is in `command`."""
        own = self.state
        own["time"], own["q"], own["qd"] = state.time, state.q, state.qd
        own["lengths"], own["tensions"] = state.muscle_lengths, state.tensions
        own["rates"] = np.nan if state.muscle_rates is None else state.muscle_rates
        own["has_temperatures"] = state.temperatures is not None
        own["temperatures"] = np.nan if state.temperatures is None else state.temperatures
        held = None
        if pose is not None:
            self._pose = np.array(pose, dtype=float)
            held = ctypes.c_void_p(self._pose.ctypes.data)
        at = [ctypes.c_void_p(item.ctypes.data) for item in (own, self.command)]
        return self.library.cards_step(at[0], held, at[1])


def exact_tensions(controller):
    """Tensions of the present program of a controller, solved with forty digits.

    The active bounds are those of the solver's x, which it finds exactly.
    """
    import mpmath

    program = controller._program
    x, low, up = program.exact.result.x, program.lower_bounds, program.upper_bounds
    fixed = (np.abs(x - low) < 1e-9 * (1 + np.abs(low))) | (
        np.abs(x - up) < 1e-9 * (1 + np.abs(up))
    )
    values = np.where(np.abs(x - low) < np.abs(x - up), low, up)
    free, rows = np.flatnonzero(~fixed), program.right.size
    count = len(free)
    with mpmath.workdps(40):
        matrix = mpmath.zeros(count + rows, count + rows)
        right = mpmath.zeros(count + rows, 1)
        for i, j in enumerate(free):
            matrix[i, i] = mpmath.mpf(float(program.hessian[j]))
            right[i] = -mpmath.mpf(float(program.gradient[j]))
            for k in range(rows):
                matrix[i, count + k] = matrix[count + k, i] = float(program.matrix[k, j])
        for k in range(rows):
            known = (
                mpmath.mpf(float(program.matrix[k, j])) * mpmath.mpf(float(values[j]))
                for j in np.flatnonzero(fixed)
            )
            right[count + k] = mpmath.mpf(float(program.right[k])) - mpmath.fsum(known)
        values[free] = [float(v) for v in mpmath.lu_solve(matrix, right)[:count]]
    return values[: controller.tension_min.size] * controller._force_unit
