import tracemalloc

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog, not_finite


@pytest.fixture
def arrays(planar_2r, run_arrays):
    return run_arrays(planar_2r, steps=20)


def test_round_trip_through_a_file(tmp_path, arrays):
    simulator, controller = arrays
    np.savez(tmp_path / "simulator.npz", **simulator)
    np.savez(tmp_path / "controller.npz", **controller)
    log = SimulatorLog.load(tmp_path / "simulator.npz")
    for name, values in simulator.items():
        np.testing.assert_array_equal(getattr(log, name), values)
    log = ControllerLog.load(tmp_path / "controller.npz")
    for name, values in controller.items():
        np.testing.assert_array_equal(getattr(log, name), values)


def test_actuator_states(arrays):
    simulator, _ = arrays
    log = SimulatorLog.from_arrays(simulator)
    assert (log.actuators.shape, log.actuator_names) == ((21, 0), ())
    states = np.arange(42.0).reshape(21, 2)
    labels = np.array(["a/activation", "b/activation"])
    log = SimulatorLog.from_arrays({**simulator, "actuators": states, "actuator_names": labels})
    np.testing.assert_array_equal(log.actuators, states)
    assert log.actuator_names == ("a/activation", "b/activation")
    assert not_finite(log) == []
    for extra, text in (
        ({"actuators": states}, "'actuators' has 2 columns.*each of the 0 names"),
        ({"actuator_names": labels}, "missing actuators"),
        ({"actuators": states[:20], "actuator_names": labels}, "'actuators' has 20 rows"),
    ):
        with pytest.raises(RunLogError, match=text):
            SimulatorLog.from_arrays({**simulator, **extra})


def test_more_keys_than_needed_are_fine(arrays):
    simulator, _ = arrays
    log = SimulatorLog.from_arrays({**simulator, "joint_names": np.array(["a", "b"])})
    np.testing.assert_array_equal(log.time, simulator["time"])


def test_missing_file_names_the_file(tmp_path):
    with pytest.raises(RunLogError, match=r"nothing\.npz: no such file"):
        SimulatorLog.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("cut", [0, 3, 100, 1000, -200, -1])
def test_damaged_file_is_an_error_of_ours(tmp_path, arrays, cut):
    path = tmp_path / "simulator.npz"
    np.savez(path, **arrays[0])
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    with pytest.raises(RunLogError, match="cannot be read"):
        SimulatorLog.load(path)


def test_flipped_bytes_are_found_by_the_checksum(tmp_path, arrays):
    path = tmp_path / "simulator.npz"
    np.savez(path, **arrays[0])
    data = bytearray(path.read_bytes())
    middle = data.index(np.ascontiguousarray(arrays[0]["q"]).tobytes()) + 40
    data[middle] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(RunLogError, match="cannot be read"):
        SimulatorLog.load(path)


def test_random_bytes_never_raise_anything_else(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "controller.npz"
    for size in (1, 10, 200, 5000):
        path.write_bytes(b"PK\x03\x04" + rng.bytes(size))
        with pytest.raises(CardsError):
            ControllerLog.load(path)


def test_pickled_objects_are_refused(tmp_path, arrays):
    path = tmp_path / "simulator.npz"
    np.savez(path, **{**arrays[0], "q": np.array([{"a": 1}] * 21, dtype=object)})
    with pytest.raises(RunLogError, match="cannot be read"):
        SimulatorLog.load(path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"q": None}, "missing q"),
        ({"q": np.zeros(21)}, r"'q' has shape \(21,\) \(expected: 2 dimensions\)"),
        ({"q": np.zeros((20, 2))}, "'q' has 20 rows, 'time' has 21"),
        ({"q": np.array([["a", "b"]] * 21)}, "'q' has type <U1"),
        ({"time": np.zeros(21)}, "does not increase at row 1"),
        ({"time": np.r_[np.arange(20.0), np.nan]}, "does not increase at row 20"),
        ({"time": np.arange(21.0)[::-1]}, "does not increase at row 1"),
    ],
)
def test_arrays_that_contradict_each_other(arrays, change, text):
    table = {**arrays[0], **change}
    table = {name: values for name, values in table.items() if values is not None}
    with pytest.raises(RunLogError, match=text):
        SimulatorLog.from_arrays(table)


def test_gigabytes_of_rows_are_not_copied_to_be_refused(arrays):
    status = np.zeros(1_000_000)
    tracemalloc.start()
    with pytest.raises(RunLogError, match="'status' has 1000000 rows, 'time' has 20"):
        ControllerLog.from_arrays({**arrays[1], "status": status})
    assert tracemalloc.get_traced_memory()[1] < status.nbytes
    tracemalloc.stop()


def test_empty_log(arrays):
    with pytest.raises(RunLogError, match="holds no rows"):
        SimulatorLog.from_arrays({name: values[:0] for name, values in arrays[0].items()})


def test_missed_deadlines_as_one_count_or_as_a_column(arrays):
    controller = arrays[1]
    log = ControllerLog.from_arrays({**controller, "missed_deadlines": np.int64(7)})
    assert log.missed_deadlines.tolist() == [7] * 20
    del controller["missed_deadlines"]
    assert ControllerLog.from_arrays(controller).missed_deadlines.sum() == 0
    with pytest.raises(RunLogError, match="missed_deadlines"):
        ControllerLog.from_arrays({**controller, "missed_deadlines": np.zeros(3)})


def test_status_as_float_and_without_value(arrays):
    status = np.zeros(20)
    status[3], status[5] = 2.0, np.nan
    log = ControllerLog.from_arrays({**arrays[1], "status": status})
    assert log.status.dtype == np.int64
    assert log.status[[2, 3, 5]].tolist() == [0, 2, 4]


def test_not_finite_values_are_counted_and_placed(arrays):
    simulator = {name: values.copy() for name, values in arrays[0].items()}
    assert not_finite(SimulatorLog.from_arrays(simulator)) == []
    simulator["q"][4, 1] = np.nan
    simulator["q"][9, 0] = np.inf
    (text,) = not_finite(SimulatorLog.from_arrays(simulator))
    assert text == "q: 2 of 42 values are not finite, first at t = 0.004 s"
