"""The log must hold exactly what was appended, appear as a whole, and not grow in memory."""

import io
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from cards_core.errors import ShapeError
from cards_core.loop.run_log import ROWS_PER_WRITE, RunLog, begun, part_paths, recover


@pytest.mark.parametrize("rows", [0, 1, ROWS_PER_WRITE, 3 * ROWS_PER_WRITE + 17])
def test_rows_come_back(tmp_path, rows):
    rng = np.random.default_rng(rows)
    time, q, empty = np.arange(rows) * 1e-3, rng.normal(size=(rows, 3)), np.empty((rows, 0))
    log = RunLog(
        tmp_path / "a" / "run.npz", {"time": None, "q": 3, "none": 0}, {"names": np.array(["x"])}
    )
    for k in range(rows):
        log.append(time[k], q[k], empty[k])
    path = log.close()
    with np.load(path, allow_pickle=False) as data:
        assert np.array_equal(data["time"], time)
        assert np.array_equal(data["q"], q)
        assert data["none"].shape == (rows, 0)
        assert data["names"].tolist() == ["x"]
    assert os.listdir(path.parent) == ["run.npz"]


def test_nothing_is_there_before_the_end_and_closing_twice_is_fine(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"time": None})
    for k in range(1000):
        log.append(float(k))
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    log.close()
    assert os.listdir(tmp_path) == ["run.npz"]
    assert log.close() == tmp_path / "run.npz"


def test_an_older_file_stays_whole_until_it_is_replaced(tmp_path):
    for rows in (5, 7):
        log = RunLog(tmp_path / "run.npz", {"time": None})
        for k in range(rows):
            log.append(float(k))
        log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["time"].size == 7


def test_a_reset_keeps_what_was_before(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"x": 2}, {"names": np.array(["a", "b"])})
    counts = (ROWS_PER_WRITE + 3, 5, 0, 1)
    for part, count in enumerate(counts):
        if part:
            log.next_part()
        for k in range(count):
            log.append(np.array([part, k], dtype=float))
    log.close()
    files = part_paths(tmp_path / "run.npz")
    assert [file.name for file in files] == [
        "run.before_reset_1.npz",
        "run.before_reset_2.npz",
        "run.npz",
    ]
    starts = []
    for file, part in zip(files, (0, 1, 3), strict=True):
        with np.load(file) as data:
            expected = [[part, k] for k in range(counts[part])]
            assert data["x"].tolist() == expected
            assert data["names"].tolist() == ["a", "b"]
        starts.append(begun(file))
    assert starts == sorted(starts)
    assert sorted(os.listdir(tmp_path)) == sorted(file.name for file in files)


def test_rows_of_a_killed_process_are_recovered(tmp_path):
    script = f"""
import os, signal, numpy as np
from cards_core.loop.run_log import RunLog
log = RunLog({str(tmp_path / "run.npz")!r}, {{"time": None, "q": 2}}, {{"n": np.array(["x"])}})
for part in range(2):
    for k in range({2 * ROWS_PER_WRITE + 7}):
        log.append(k + 1000.0 * part, np.full(2, k))
    if part == 0:
        log.next_part()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert [name for name in os.listdir(tmp_path) if not name.endswith(".rows")] == []
    made = recover(tmp_path)
    assert made == part_paths(tmp_path / "run.npz")
    with np.load(made[0]) as first, np.load(made[1]) as last:
        assert first["time"].tolist() == list(range(2 * ROWS_PER_WRITE + 7))
        # what was in memory is gone with the process
        assert last["time"].tolist() == [1000.0 + k for k in range(2 * ROWS_PER_WRITE)]
        assert last["q"].shape == (2 * ROWS_PER_WRITE, 2)
        assert last["n"].tolist() == ["x"]
    assert recover(tmp_path) == []
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in made)


def test_logs_of_processes_that_run_are_left_alone(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    rows = tmp_path / f".run.npz.{other.pid}.1.rows"
    rows.write_bytes(b"{}")
    assert recover(tmp_path) == []
    assert rows.exists()
    other.communicate(b"\n")


class FullDisk(io.BytesIO):
    """A file on a disk that has room for so many bytes."""

    room = 8 * 2 * ROWS_PER_WRITE

    def write(self, data):
        if self.tell() + len(data) > self.room:
            raise OSError(28, "No space left on device")
        return super().write(data)


def test_a_full_disk_is_told_once_and_keeps_what_is_there(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"x": 2})
    real, log._file = log._file, FullDisk()
    failures = 0
    for k in range(5 * ROWS_PER_WRITE):
        try:
            log.append(np.full(2, float(k)))
        except OSError:
            failures += 1
    assert failures == 1
    log.next_part()
    log.append(np.zeros(2))
    real.write(log._file.getvalue())
    real.close()
    log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["x"][:, 0].tolist() == list(range(ROWS_PER_WRITE))


def test_a_reset_on_a_full_disk_does_not_fail_and_the_next_row_tells(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"x": 2})
    log.append(np.zeros(2))
    log._file.close()
    log._file = FullDisk()
    log._file.room = 0
    log.next_part()
    with pytest.raises(OSError, match="No space left"):
        log.append(np.zeros(2))
    log.append(np.zeros(2))


def test_memory_stays_flat(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"x": 40})
    row = np.zeros(40)
    tracemalloc.start()
    for _ in range(20_000):  # 6.4 MB
        log.append(row)
    log.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_the_number_of_values_is_checked(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"time": None, "q": 2})
    with pytest.raises(ShapeError, match="time"):
        log.append(1.0)


def test_a_link_in_the_place_of_unfinished_rows_is_not_followed(tmp_path):
    (tmp_path / "kept").write_text("kept")
    for name in ("kept", "made"):
        link = tmp_path / f".run.npz.{os.getpid()}.1.rows"
        link.symlink_to(tmp_path / name)
        with pytest.raises(OSError, match="symbolic links"):
            RunLog(tmp_path / "run.npz", {"time": None})
        link.unlink()
    assert (tmp_path / "kept").read_text() == "kept"
    assert os.listdir(tmp_path) == ["kept"]
