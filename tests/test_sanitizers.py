"""C code under the sanitizers: what is quick; the rest with ``fuzz/sanitize.py``."""

import subprocess
import sys

import pytest
import sanitize
from sanitize import command, environment

CORE = "src/cards_core/test"

QUICK = (
    f"{CORE}/control/cpg/test_oscillators.py",
    f"{CORE}/body_image/test_network.py",
    f"{CORE}/estimation/test_kalman_update.py",
)

FAULTS = {
    "overflow of the heap": (
        "#include <stdlib.h>\n"
        "int fault(int n) { char *p = malloc(4); int x = p[n + 4]; free(p); return x; }\n",
        "AddressSanitizer: heap-buffer-overflow",
    ),
    "overflow of an integer": (
        "int fault(int n) { return 2147483647 + n + 1; }\n",
        "signed integer overflow",
    ),
    "conversion of a number that is none": (
        "int fault(int n) { return (int)(n * 0.0 / 0.0); }\n",
        "outside the range of representable values of type 'int'",
    ),
}


def run(folder, arguments):
    """Run Python with sanitizers; skips where there are none."""
    try:
        variables = environment(folder)
    except LookupError as error:
        pytest.skip(str(error))
    return subprocess.run(
        command(arguments), env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(tmp_path, fault):
    source, report = FAULTS[fault]
    program = (
        "from cards_core.codegen.library import load_library\n"
        f"load_library('a fault', {source!r}).fault(0)\n"
        "print('nothing found')\n"
    )
    done = run(tmp_path, ["-c", program])
    assert done.returncode != 0
    assert report in done.stderr
    assert "nothing found" not in done.stdout


def test_quick_tests_of_c_code(tmp_path):
    done = run(tmp_path, ["-m", "pytest", "-p", "no:cacheprovider", "-x", *QUICK])
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    compiled = [path.read_text() for path in tmp_path.glob("*/model.c")]
    assert sum(len(text) > 500 for text in compiled) >= 3  # nothing came from another cache
    libraries = [path.read_bytes() for path in tmp_path.glob("*/model.so")]
    assert all(b"__asan_init" in library for library in libraries)


def test_no_sanitizers_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sanitize, "sanitizer_library", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["sanitize.py"])
    assert sanitize.main() == 2
    assert "gcc with libasan is not on this machine" in capsys.readouterr().err
