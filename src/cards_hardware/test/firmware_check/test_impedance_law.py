"""The muscle impedance law of the firmware against vectors, on this machine and on a Cortex-M4."""

import ctypes
import os
import shutil
import struct
import subprocess

import impedance_vectors
import numpy as np
import pytest
from native_code import folder_for

from cards_hardware.firmware_check import native_firmware
from cards_hardware.hil.emulator import QEMU
from cards_hardware.hil.firmware_build import CROSS_COMPILER
from cards_hardware.protocol.enums import ParameterId
from cards_hardware.protocol.generate import checkout
from cards_hardware.protocol.schema import QUANTITIES

ROWS = impedance_vectors.read()
CORE = ("test/impedance_law.c", "core/muscle.c", "core/numbers.c")
FLOAT = 1e-6  # of the largest term: the firmware computes in single precision
MACHINE = "mps2-an386"
TARGET_FLAGS = (
    # those of boards/stm32f405/rules.mk
    *("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    *("-std=gnu11", "-O2", "-ffreestanding", "-fno-common", "-Wall", "-Wextra", "-Werror"),
    *("-nostartfiles", "-specs=nano.specs", "-specs=nosys.specs"),
    *("-Wl,--section-start=.vectors=0x0", "-Wl,-Ttext=0x100", "-Wl,-Tdata=0x20000000"),
)


def counts(row):
    return [round(row[name] * per_unit) for name, per_unit in impedance_vectors.COUNTS.items()]


def check(tensions):
    assert len(tensions) == len(ROWS)
    for row, tension in zip(ROWS, tensions, strict=True):
        allowed = FLOAT * max(impedance_vectors.largest_term(row), 1.0)
        assert abs(tension - row["T"]) <= allowed, row
        if row["K"] == row["B"] == 0.0:  # tension control, to the last bit of single precision
            floor = max(row["T_floor"], row["T_min"])
            wanted = min(max(row["T0"], floor), row["T_max"])
            count = np.float32(round(10.0 * wanted))
            assert tension == count * np.float32(0.1), row


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    folder = folder_for("law", tmp_path_factory)
    library = native_firmware.build(folder, "impedance_law", CORE)
    library.impedance_tension.restype = ctypes.c_float
    return lambda row: library.impedance_tension((ctypes.c_int32 * 10)(*counts(row)))


def test_the_vectors_are_up_to_date():
    script = "src/cards_core/test/helpers/impedance_vectors.py"
    assert impedance_vectors.FILE.read_text() == impedance_vectors.text(), f"run python {script}"
    assert [row["T"] for row in ROWS] == [impedance_vectors.tension(row) for row in ROWS]


def test_the_vectors_see_every_case():
    assert len(ROWS) > 190
    slack = [row for row in ROWS if row["l"] < row["l0"]]
    ends = [row["T"] in (row["T_min"], row["T_max"], row["T_floor"]) for row in ROWS]
    assert len(slack) > 30
    assert 50 < sum(ends) < 150
    assert sum(row["T"] == row["T_max"] for row in ROWS) > 5
    assert sum(row["T"] == row["T_floor"] > row["T_min"] for row in ROWS) > 20


def test_the_vectors_are_in_counts_of_the_line():
    for name, parameter in (
        ("K", ParameterId.STIFFNESS),
        ("B", ParameterId.DAMPING),
        ("T_floor", ParameterId.TENSION_FLOOR),
    ):
        assert impedance_vectors.COUNTS[name] == round(1.0 / parameter.scale)
    for name, quantity in (("T0", "tension"), ("l0", "length"), ("v0", "rate")):
        assert impedance_vectors.COUNTS[name] == round(1.0 / QUANTITIES[quantity].scale)
    for row in ROWS:
        for name, per_unit in impedance_vectors.COUNTS.items():
            assert round(row[name] * per_unit) == pytest.approx(row[name] * per_unit, abs=1e-6)


def test_the_law_natively(native):
    check([native(row) for row in ROWS])


def test_tension_rises_with_length_rate_and_every_set_point_but_length_and_rate(native):
    rng = np.random.default_rng(3)
    signs = {"l": 1, "ldot": 1, "T0": 1, "T_floor": 1, "l0": -1, "v0": -1}
    for row in ROWS:
        before = native(row)
        assert row["T_min"] <= before + 1e-4
        for name, sign in signs.items():
            more = row | {name: row[name] + float(rng.uniform(0.001, 0.1))}
            assert sign * (native(more) - before) >= -1e-6 * impedance_vectors.largest_term(more)


def test_the_law_on_the_processor(tmp_path):
    """Cross-compiled as for the board, run by QEMU."""
    for name in (CROSS_COMPILER, QEMU):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is missing")
    lines = ",\n".join(f"    {{{', '.join(map(str, counts(row)))}}}" for row in ROWS)
    (tmp_path / "rows.h").write_text(
        f"static const struct impedance_row rows[] = {{\n{lines}}};\n", encoding="ascii"
    )
    firmware = checkout() / "firmware"
    image = tmp_path / "law.elf"
    define = f'-DIMPEDANCE_ROWS="{tmp_path / "rows.h"}"'
    sources = [str(firmware / name) for name in CORE]
    built = subprocess.run(
        [CROSS_COMPILER, *TARGET_FLAGS, define, *sources, "-lm", "-o", image],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    command = [QEMU, "-M", MACHINE, "-display", "none", "-monitor", "none", "-serial", "none"]
    done = subprocess.run(
        [*command, "-semihosting-config", "enable=on,target=native", "-kernel", image],
        # sanitizers of this process are not for QEMU, which would say so among the numbers
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        capture_output=True,
        text=True,
        timeout=120.0,
        check=True,
    )
    words = (done.stdout + done.stderr).split()
    check([struct.unpack(">f", bytes.fromhex(word))[0] for word in words])
