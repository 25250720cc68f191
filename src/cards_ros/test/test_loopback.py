"""A machine without loopback: said at once, with a remedy."""

import shutil
import subprocess
import sys

import pytest

from cards_ros.middleware import check_loopback

PROGRAM = "from cards_ros.middleware import check_loopback as c; c()"


def test_a_machine_whose_loopback_is_up():
    check_loopback()


def test_a_machine_without_loopback():
    alone = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no network namespaces for this user: unshare --net --map-root-user")
    done = subprocess.run(
        [*alone, sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "CardsError: the loopback interface of this machine is down" in done.stderr
    assert "ip link set lo up" in done.stderr
