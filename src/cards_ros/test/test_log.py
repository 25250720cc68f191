"""The log must hold exactly what was appended, appear as a whole, and not grow in memory."""

import os
import tracemalloc

import numpy as np
import pytest

from cards_core.errors import ShapeError
from cards_ros.log import ROWS_PER_WRITE, RunLog


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
    assert os.listdir(tmp_path) == []
    log.close()
    assert log.close() == tmp_path / "run.npz"


def test_an_older_file_stays_whole_until_it_is_replaced(tmp_path):
    for rows in (5, 7):
        log = RunLog(tmp_path / "run.npz", {"time": None})
        for k in range(rows):
            log.append(float(k))
        log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["time"].size == 7


def test_restart_forgets_the_rows(tmp_path):
    log = RunLog(tmp_path / "run.npz", {"x": 2})
    for k in range(ROWS_PER_WRITE + 3):
        log.append(np.full(2, float(k)))
    log.restart()
    log.append(np.array([7.0, 8.0]))
    log.close()
    with np.load(tmp_path / "run.npz") as data:
        assert data["x"].tolist() == [[7.0, 8.0]]


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
