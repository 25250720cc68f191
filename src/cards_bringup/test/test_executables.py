"""Executables of nodes that get Ctrl-C while they start: at any moment they end without a word."""

import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

pytestmark = pytest.mark.ros

STARTS = [
    ("controllers", "ctc_joint"),
    ("cards_sim", "simulator"),
    ("cards_viz", "muscle_markers"),
    ("cards_rods", "rod_solver"),
    ("cards_hardware", "bridge"),
]
MODULES = 500
"""So many modules at least are imported before a node can answer Ctrl-C."""


def lines_until(stream, wanted):
    """Read lines, which an interpreter writes for each module, up to one that is wanted."""
    for line in stream:
        if wanted(line):
            return
    pytest.fail("the process ended early")


@pytest.mark.parametrize(("package", "name"), STARTS)
@pytest.mark.parametrize("draw", [0, 1])
def test_ctrl_c_while_a_node_imports(package, name, draw):
    rng = np.random.default_rng([draw, *name.encode()])
    after = int(rng.integers(1, MODULES))
    code = f"import sys; from {package}.executables import {name}; sys.exit({name}())"
    process = subprocess.Popen(
        [sys.executable, "-P", "-X", "importtime", "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        lines_until(process.stderr, lambda line: line.rstrip().endswith(f"{package}.executables"))
        for _ in range(after):
            lines_until(process.stderr, lambda _line: True)
        process.send_signal(signal.SIGINT)
        said, rest = process.communicate(timeout=120)
    wrong = [line for line in rest.splitlines() if not line.startswith("import time:")]
    assert (process.returncode, said, wrong) == (0, "", []), f"after {after} modules"
