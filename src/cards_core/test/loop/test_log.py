"""The log must hold exactly what was appended, appear as a whole, and not grow in memory."""

import io
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from cards_core.errors import ShapeError
from cards_core.loop.run_log import (
    CONTROLLER_LOG,
    ROWS_PER_WRITE,
    SIMULATOR_LOG,
    RunLog,
    begun,
    part_path,
    part_paths,
    recover,
)


@pytest.mark.parametrize("rows", [0, 1, ROWS_PER_WRITE, 3 * ROWS_PER_WRITE + 17])
def test_rows_come_back(tmp_path, rows):
    rng = np.random.default_rng(rows)
    times, q, empty = np.arange(rows) * 1e-3, rng.normal(size=(rows, 3)), np.empty((rows, 0))
    log = RunLog(
        tmp_path / "a" / "run.npz", {"time": None, "q": 3, "none": 0}, {"names": np.array(["x"])}
    )
    for k in range(rows):
        log.append(times[k], q[k], empty[k])
    path = log.close()
    with np.load(path, allow_pickle=False) as data:
        assert np.array_equal(data["time"], times)
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


def test_logs_have_their_names():
    assert (SIMULATOR_LOG, CONTROLLER_LOG) == ("simulator.npz", "controller.npz")


def test_a_column_of_one_number_is_no_scalar(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"scalar": None, "one": 1}, {"none": np.array([])})
    log.append(1.0, np.array([2.0]))
    log.append(3.0, 4.0)
    log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["scalar"].tolist() == [1.0, 3.0]
        assert data["one"].tolist() == [[2.0], [4.0]]
        assert (data["none"].dtype.kind, data["none"].size) == ("U", 0)


def test_a_log_without_columns_has_no_rows(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"none": 0})
    log.append(np.empty(0))
    assert (log.rows, log.number) == (1, 1)
    log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["none"].shape == (0, 0)


def test_what_a_killed_process_loses_is_less_than_256_rows(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"time": None})
    (rows,) = tmp_path.iterdir()
    empty = rows.stat().st_size
    sizes = []
    for k in range(2 * 256):
        log.append(float(k))
        sizes.append((rows.stat().st_size - empty) // 8)
    assert sizes == [0] * 255 + [256] * 256 + [512]
    log.close()


def test_rows_are_for_those_who_may_read_files_of_their_user(tmp_path):
    before = os.umask(0o027)
    try:
        log = RunLog(tmp_path / "run.npz", {"time": None})
    finally:
        os.umask(before)
    (rows,) = tmp_path.iterdir()
    assert rows.name == f".run.npz.{os.getpid()}.1.rows"
    assert rows.stat().st_mode & 0o777 == 0o640
    log.close()


def test_a_log_says_when_it_began(tmp_path):
    before = time.monotonic()
    log = RunLog(tmp_path / "run.npz", {"time": None})
    between = time.monotonic()
    log.append(0.0)
    log.next_part()
    log.append(0.0)
    after = time.monotonic()
    last = log.close()
    first = part_path(last, 1)
    assert before <= begun(first) <= between <= begun(last) <= after
    np.savez(tmp_path / "other.npz", time=np.zeros(1))
    assert np.isnan(begun(tmp_path / "other.npz"))
    (tmp_path / "text.npz").write_text("no log")
    with pytest.raises(zipfile.BadZipFile):
        begun(tmp_path / "text.npz")


def test_parts_are_in_the_order_in_which_they_were_recorded(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"time": None})
    for k in range(11):
        assert log.number == k + 1
        log.append(float(k))
        assert log.rows == 1
        log.next_part()
        assert log.rows == 0
    assert log.path == tmp_path / "run.npz"
    last = log.close()
    (tmp_path / "run.before_reset_x.npz").write_text("of somebody else")
    (tmp_path / "run.before_reset_1.npz.old").write_text("likewise")
    assert part_paths(last) == [*(part_path(last, k) for k in range(1, 12)), last]
    last.unlink()
    assert part_paths(last) == [part_path(last, k) for k in range(1, 12)]
    assert part_paths(tmp_path / "nowhere" / "run.npz") == []
    assert recover(tmp_path / "nowhere") == []


def test_a_part_that_cannot_be_begun_is_no_part(tmp_path, monkeypatch):
    log = RunLog(tmp_path / "run.npz", {"time": None})
    log.append(1.0)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        log.next_part()
    assert log.failed
    with pytest.raises(OSError, match="No space left"):
        log.append(2.0)
    log.append(3.0)  # told once
    log.next_part()
    assert log.close() == tmp_path / "run.npz"
    assert os.listdir(tmp_path) == ["run.before_reset_1.npz"]
    with np.load(tmp_path / "run.before_reset_1.npz") as data:
        assert data["time"].tolist() == [1.0]


def dead_process():
    """Return the number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_logs_of_this_process_and_of_dead_ones_are_recovered_each_for_itself(tmp_path):
    for value, name in ((1.0, "a.npz"), (2.0, "b.npz")):
        log = RunLog(tmp_path / name, {"time": None})
        for part in range(2):
            log.append(value + 0.5 * part)
            if not part:
                log.next_part()
        log._flush()
        log._file.close()
    dead = dead_process()
    for part in (1, 2):
        own = tmp_path / f".b.npz.{os.getpid()}.{part}.rows"
        own.rename(tmp_path / f".b.npz.{dead}.{part}.rows")
    # killed while it was made, and while it wrote a row
    (tmp_path / f".c.npz.{dead}.1.rows").write_text('{"widths": {"ti')
    with (tmp_path / f".b.npz.{dead}.2.rows").open("ab") as rows:
        rows.write(b"1234567")
    made = recover(tmp_path)
    assert [path.name for path in made] == [
        "a.before_reset_1.npz",
        "a.npz",
        "b.before_reset_1.npz",
        "b.npz",
    ]
    for path, value in zip(made, (1.0, 1.5, 2.0, 2.5), strict=True):
        with np.load(path) as data:
            assert data["time"].tolist() == [value]
    assert sorted(path.name for path in tmp_path.iterdir() if path not in made) == [
        f".c.npz.{dead}.1.rows"
    ]


def test_processes_that_run_do_not_notice(tmp_path, monkeypatch):
    """Also those of other users, which may not be asked."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    rows = tmp_path / f".run.npz.{other.pid}.1.rows"
    rows.write_text("{}")
    assert recover(tmp_path) == []
    other.communicate(b"\n")
    assert other.returncode == 0
    dead = tmp_path / f".run.npz.{dead_process()}.1.rows"
    rows.rename(dead)

    def forbidden(process, signal):
        assert signal == 0
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert recover(tmp_path) == []
    assert dead.exists()


def test_as_many_values_as_columns(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"time": None, "q": 2})
    with pytest.raises(ShapeError, match=r"3 values given, .* each of \['time', 'q'"):
        log.append(1.0, np.zeros(2), 1.0)
    assert log.rows == 0
    log.close()
