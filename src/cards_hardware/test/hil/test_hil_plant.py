"""The plant process: drive bus, time, logs. The board is a few lines of Python here."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_hardware.hil.drive_bus import DriveBusCodec, DriveCommand
from cards_hardware.hil.muscle_units import ELASTIC_SPRING
from cards_hardware.hil.plant import MAX_TICKS, BoardWiring, Histogram, Plant, PlantSettings
from cards_hardware.protocol.codec import encode, unpack
from cards_hardware.protocol.frames import FrameDecoder

pytestmark = pytest.mark.serial

MUSCLES = ("cable_2", "cable_1", "cable_3", "cable_4")
JOINTS = ("joint_1", "joint_2")
CURRENTS = np.array([0.5, 0.25, 0.125, 0.375])


def command(tick, *, source=0, enable=1, currents=CURRENTS, t_us=None):
    values = {
        "muscles": len(currents),
        "enable": enable,
        "tick": tick % 2**16,
        "source_t_us": source,
        "current": currents,
    }
    t_us = 1000 * tick if t_us is None else t_us
    return encode("DRIVE_COMMAND", values, node=1, seq=tick % 256, t_us=t_us % 2**32)


# The bus --------------------------------------------------------------------------------------


def test_the_fast_path_reads_what_the_codec_wrote():
    bus = DriveBusCodec(4, 2)
    stream = command(7, source=99) + b"\0\0garbage\0" + command(8, enable=0)
    found = []
    for start in range(0, len(stream), 5):
        found += bus.feed(stream[start : start + 5])
    assert [(c.tick, c.source_us, c.enabled, c.device_us) for c in found] == [
        (7, 99, True, 7000),
        (8, 0, False, 8000),
    ]
    assert found[0].currents == pytest.approx(CURRENTS)
    assert (bus.commands, bus.damaged, bus.ignored) == (2, 1, 0)


def test_the_codec_reads_what_the_fast_path_wrote():
    bus = DriveBusCodec(2, 3)
    positions = np.array([-5, 2**30], np.int32)
    loads = np.array([-32767, 12], np.int16)
    data = bus.state(
        3,
        77,
        (1, 25.51, 23.999),
        (positions, loads, np.array([-1.5, 0.25])),
        np.arange(3, dtype="i4"),
    )
    (frame,) = FrameDecoder().feed(data)
    values = unpack(frame)
    assert (frame.name, frame.t_us, values["tick"], values["slow"]) == ("DRIVE_STATE", 77, 3, 1)
    assert values["temperature"] == pytest.approx(25.51)
    assert values["vbus"] == pytest.approx(23.999)
    assert values["position"].tolist() == positions.tolist()
    assert values["load"].tolist() == loads.tolist()
    assert values["current"] == pytest.approx([-1.5, 0.25])
    assert values["joint"].tolist() == [0, 1, 2]


def test_frames_for_other_drives_are_ignored():
    bus = DriveBusCodec(3, 0)
    assert bus.feed(command(1) + encode("HELLO", {"min_major": 1, "max_major": 1, "nonce": 1},
                                        node=0, seq=0, t_us=0)) == []  # fmt: skip
    assert bus.ignored == 2


# Statistics -----------------------------------------------------------------------------------


def test_histogram_agrees_with_the_samples():
    samples = np.random.default_rng(0).gamma(2.0, 700.0, 5000).astype(int)
    histogram = Histogram(10, 2000)
    for sample in samples:
        histogram.add(int(sample))
    for percent in (50.0, 99.0):
        assert histogram.percentile(percent) == pytest.approx(
            np.percentile(samples, percent), abs=15
        )
    summary = histogram.summary()
    assert summary["count"] == 5000
    assert summary["max"] == pytest.approx(1e-3 * samples.max())
    coarse = histogram.coarse((0, 1000, 2000))
    assert sum(coarse.values()) == 5000
    assert coarse["0..1000"] == np.count_nonzero(samples < 1000)
    assert Histogram().summary() == {"count": 0, "p50": None, "p99": None, "max": None}


# The process ----------------------------------------------------------------------------------


class FakeBoard:
    """Sends ticks as it is told, at once, and waits for the answers."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20.0)
        self.socket.connect(path)
        self.decoder = FrameDecoder()
        self.answers = []

    def send(self, data):
        self.socket.sendall(data)
        while not (frames := self.decoder.feed(self.socket.recv(4096))):
            pass
        self.answers += [unpack(frame) for frame in frames]
        return self.answers[-1]


@pytest.fixture
def plant(tmp_path):
    """Start a plant: a function of fields of its settings; returns process, board and folder."""
    started = []

    def start(boards=None, **more):
        wiring = BoardWiring("arm", str(tmp_path / "bus"), MUSCLES, JOINTS)
        boards = tuple(boards or (wiring,))
        fields = {"stand_time": 0.02, "log_dir": str(tmp_path), "patience": 5.0, **more}
        status = str(tmp_path / "status.json")
        PlantSettings("planar_2r", boards, status, **fields).save(tmp_path / "settings.json")
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cards_hardware.hil.plant", tmp_path / "settings.json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process, FakeBoard(boards[0].socket)

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def finish(process, folder):
    process.send_signal(signal.SIGTERM)
    assert process.wait(20.0) == 0
    return json.loads((folder / "status.json").read_text())


def test_the_world_lives_in_the_board_s_time(plant, tmp_path):
    process, board = plant()
    first = board.send(command(65530))
    for tick in range(65531, 65580):
        board.send(command(tick, source=5 if tick > 65540 else 0))
    board.send(command(65583, source=6))  # three ticks were overrun
    last = board.send(command(65584, source=6))
    status = finish(process, tmp_path)
    assert (last["tick"], last["muscles"], last["joints"]) == (65584 % 2**16, 4, 2)
    assert status["drive_frames"] == 52
    assert status["ticks"] == 55
    assert status["ticks_skipped"] == 3
    assert status["commands"] == 2
    # the load of the unit that pulls most grows, each channel answers for its own muscle
    assert last["load"][0] - first["load"][0] > 500
    log, hil = np.load(tmp_path / "simulator.npz"), np.load(tmp_path / "hil.npz")
    # the log begins with the first command of the host
    assert len(log["time"]) == len(hil["time"]) == 55 - 11
    assert log["time"] == pytest.approx(1e-3 * np.arange(1, 45))
    assert np.count_nonzero(np.isfinite(hil["latency"])) == 2
    names = log["muscle_names"].tolist()
    tensions = log["tensions"][15]  # still on the stand: no friction
    ratio = [tensions[names.index(name)] for name in MUSCLES] / CURRENTS
    assert ratio == pytest.approx([86.5] * 4, rel=0.06)
    assert set(log["actuator_names"]) >= {"cable_1/current", "cable_1/temperature"}


def test_another_board_is_told_the_time_of_the_world(plant, tmp_path):
    """The first board sleeps for 8 ms: the other one must not take 9 ms of motion for one."""
    halves = [
        BoardWiring(name, str(tmp_path / name), MUSCLES[i : i + 2], JOINTS[i // 2 : i // 2 + 1])
        for i, name in ((0, "one"), (2, "two"))
    ]
    process, first = plant(boards=halves)
    second = FakeBoard(halves[1].socket)
    for tick in range(20):
        first.send(command(tick, currents=CURRENTS[:2]))
        here = second.send(command(500 + tick, currents=CURRENTS[2:]))
    again = second.send(command(520, currents=CURRENTS[2:]))
    assert again["tick"] == here["tick"]  # the world stood still
    first.send(command(28, currents=CURRENTS[:2]))
    later = second.send(command(529, currents=CURRENTS[2:]))
    assert (later["tick"] - here["tick"]) % 2**16 == 9
    finish(process, tmp_path)


def test_the_stand_holds_then_the_arm_moves(plant, tmp_path):
    process, board = plant()
    for tick in range(60):
        answer = board.send(command(tick, source=1))
        if tick == 20:
            held = answer["joint"].tolist()
        assert tick > 20 or answer["joint"].tolist() == board.answers[0]["joint"].tolist()
    assert answer["joint"].tolist() != held
    finish(process, tmp_path)


def test_a_board_that_restarts_goes_on(plant, tmp_path):
    process, board = plant(log_always=True)
    for tick in range(1000, 1010):
        board.send(command(tick))
    board.socket.close()
    board = FakeBoard(str(tmp_path / "bus"))
    for tick in range(10):
        board.send(command(tick, t_us=1000 * tick))
    status = finish(process, tmp_path)
    assert status["connections"] == 2
    assert status["ticks"] == 20  # the jump of the counter makes no time
    device = np.load(tmp_path / "hil.npz")["device"]
    assert (np.diff(device) >= 0.0).all()


def test_without_a_board_time_goes_on_and_the_drives_stop(plant, tmp_path):
    process, board = plant(patience=0.02, log_always=True)
    for tick in range(50):
        board.send(command(tick, source=1))
    end = time.monotonic() + 20.0
    while json.loads((tmp_path / "status.json").read_text())["ticks"] < 300:
        assert time.monotonic() < end
        time.sleep(0.05)
    finish(process, tmp_path)
    log, hil = np.load(tmp_path / "simulator.npz"), np.load(tmp_path / "hil.npz")
    alone = hil["enabled"] == 0.0
    assert alone.sum() > 200
    start = int(np.argmax(alone))
    names = log["actuator_names"].tolist()
    current = log["actuators"][:, names.index("cable_2/current")]
    assert current[start + 3] == pytest.approx(0.5, rel=1e-3)
    assert current[start + 12] < 0.01
    assert (log["tensions"][start + 20 :] == 0.0).all()


def test_what_the_plant_is_told_is_checked(tmp_path):
    (tmp_path / "s.json").write_text('{"robot": "planar_2r", "stand": 1}')
    with pytest.raises(CardsError, match="no settings of a plant"):
        PlantSettings.load(tmp_path / "s.json")
    wiring = BoardWiring("arm", "/tmp/x", MUSCLES, JOINTS)
    settings = PlantSettings("planar_2r", (wiring,), "status", seed=4)
    settings.save(tmp_path / "t.json")
    assert PlantSettings.load(tmp_path / "t.json") == settings


# Its parts, without the process -----------------------------------------------------------------


def test_bins_of_a_histogram_and_what_is_beyond_them():
    histogram = Histogram(20, 5)
    for duration in (0, 19, 20, 99, 100, 5000):
        histogram.add(duration)
    assert histogram.counts.tolist() == [2, 1, 0, 0, 3]
    assert histogram.maximum == 5000
    assert histogram.coarse((0, 20, 80)) == {"0..20": 2, "20..80": 1, "80..": 3}
    # the end of the bin in which so many percent are reached
    assert [histogram.percentile(p) for p in (1.0, 33.0, 34.0, 50.0, 51.0)] == [
        20.0, 20.0, 40.0, 40.0, 100.0,
    ]  # fmt: skip
    assert np.isnan(Histogram().percentile(50.0))
    one = Histogram()
    one.add(7)
    assert one.percentile(50.0) == 7.0  # never more than the longest
    assert one.summary(scale=1.0) == {"count": 1, "p50": 7.0, "p99": 7.0, "max": 7.0}
    assert (len(one.counts), one.counts[0]) == (10000, 1)
    one.add(20)
    assert one.counts[1] == 1


@pytest.fixture
def parts(tmp_path):
    """A plant with two boards in this process; its world is never asked for a motion."""
    wiring = (
        BoardWiring("one", str(tmp_path / "one"), MUSCLES[:2], JOINTS),
        BoardWiring("two", str(tmp_path / "two"), MUSCLES[2:], ()),
    )
    status = str(tmp_path / "status.json")
    made = Plant(PlantSettings("planar_2r", wiring, status, patience=0.1))
    yield made
    made.close()


def serve(plant, tick, *, board=0, device_us=0, source=0, enabled=True):
    told = DriveCommand(tick % 2**16, device_us % 2**32, source, enabled, np.zeros(2))
    before = plant.world.ticks
    plant._serve(plant._buses[board], told, answer=False)
    return plant.world.ticks - before


def test_the_world_makes_the_ticks_of_the_first_board(parts):
    assert [serve(parts, tick) for tick in (2**16 - 2, 2**16 - 1, 2**16, 2**16 + 3)] == [
        1,
        1,
        1,
        3,
    ]
    assert serve(parts, 2**16 + 3) == 0  # the same again
    assert serve(parts, 500, board=1) == 0  # the others' ticks are not the time
    assert parts.status()["ticks_skipped"] == 2
    assert serve(parts, 2**16 + 3 + MAX_TICKS) == MAX_TICKS
    assert serve(parts, 2**16 + 4 + 2 * MAX_TICKS) == 1  # a board that restarted
    assert parts.status()["ticks_skipped"] == 2 + MAX_TICKS - 1
    assert parts.status()["ticks"] == 6 + MAX_TICKS + 1


def test_time_goes_on_without_the_board_after_its_patience(parts):
    begin = parts._heard
    parts._go_on_alone(begin + 10.0)
    assert parts.world.ticks == 0  # no board has ever ticked
    serve(parts, 1)
    heard = parts._heard
    parts._go_on_alone(heard + 0.09)
    assert parts.world.ticks == 1
    parts._go_on_alone(heard + 0.1105)
    assert parts.world.ticks == 1 + 110
    parts._go_on_alone(heard + 0.1105)
    assert parts.world.ticks == 1 + 110
    # what the board then overran was made already
    assert serve(parts, 1 + 112) == 2
    assert serve(parts, 1 + 113) == 1


def test_times_of_commands_are_counted(parts):
    now = 1000
    serve(parts, 1, device_us=2**32 - 500)
    serve(parts, 2, device_us=500, source=now)
    serve(parts, 3, device_us=1600, source=now)
    serve(parts, 4, device_us=2400, source=now + 1)
    serve(parts, 5, device_us=2400, source=0)
    status = parts.status()
    assert status["commands"] == 2
    assert status["command_to_drive_ms"]["count"] == 2
    assert status["device_tick_ms"]["count"] == 4
    assert status["device_tick_us"]["960..1040"] == 1
    assert status["device_tick_us"]["1100..1200"] == 1
    assert status["device_tick_us"]["800..900"] == 1
    assert status["device_tick_us"]["0..800"] == 1
    assert status["device_tick_ms"]["max"] == 1.1
    assert status["tick_interval_ms"]["count"] == 4
    assert status["work_ms"]["count"] == 5
    assert status["robot"] == "planar_2r"
    assert status["time_s"] == pytest.approx(5e-3)
    assert parts._device == pytest.approx(1e-6 * (2**32 + 2400))


def test_settings_are_read_as_they_were_written(tmp_path):
    wiring = BoardWiring("one", "/tmp/one", ("a",), ())
    settings = PlantSettings("arm", (wiring,), "/tmp/s.json", seed=3, elastic=True, strength=0.5)
    settings.save(tmp_path / "s.json")
    assert PlantSettings.load(tmp_path / "s.json") == settings
    plain = PlantSettings("arm", (), "s")
    assert (plain.log_dir, plain.duration, plain.log_always, plain.log_every) == (
        "",
        0.0,
        False,
        1,
    )
    assert (plain.seed, plain.strength, plain.world, plain.patience) == (0, 1.0, "", 0.1)
    assert plain.design.spring is None
    spring = settings.design.spring
    assert (spring.force_scale, spring.growth) == (0.5 * ELASTIC_SPRING.force_scale, 350.0)
    for text in ("{", "{}", '{"robot": "arm", "boards": [], "status": "s", "colour": 1}'):
        (tmp_path / "s.json").write_text(text)
        with pytest.raises(CardsError, match=r"no settings of a plant .*expected: robot, boards"):
            PlantSettings.load(tmp_path / "s.json")
