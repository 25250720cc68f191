"""Whole-system tests: they run the command line as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cards(tmp_path_factory):
    """Run ``cards ARGS``; returns the finished process."""
    cache = tmp_path_factory.mktemp("cache")
    # only what this interpreter needs to find our packages: no other settings of the caller
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "CARDS_CACHE": os.environ.get("CARDS_CACHE", str(cache)),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }

    def run(*arguments: str, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cards_bringup", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    run.environment = environment
    return run


@pytest.fixture(scope="session")
def demo(cards):
    """Run ``cards demo ARGS --headless`` into a folder; returns the summary."""

    def run(out: Path, *arguments: str) -> dict:
        result = cards("demo", *arguments, "--headless", "--out", str(out))
        assert result.returncode == 0, result.stderr
        return json.loads((out / "summary.json").read_text())

    return run
