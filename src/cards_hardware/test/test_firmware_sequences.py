"""Random sequences on the firmware, natively: the contract holds, and wrong firmware is noticed.

A thousand are run by hand: ``make -C firmware sequences``, ``helpers/wrong_firmware.py``.
"""

import pytest
from wrong_firmware import WRONG, build, run

from cards_core.codegen.toolchain import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


def test_no_violation(tmp_path):
    done = run(build(tmp_path, find_compiler()), 60)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "60 sequences" in done.stdout
    assert "0 violations" in done.stdout


@pytest.mark.parametrize(
    "name",
    ["the drives stay on behind the ramp", "arming does not look at values that are not saved"],
)
def test_wrong_firmware_is_noticed(tmp_path, name):
    done = run(build(tmp_path, find_compiler(), WRONG[name]), 60)
    assert done.returncode == 1, done.stdout[-6000:]
    assert done.stdout.startswith("VIOLATION: sequence ")
