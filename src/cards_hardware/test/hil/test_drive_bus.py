"""The drive bus: frames of one board, and the socket where it finds its drives."""

import socket
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_hardware.hil.drive_bus import DRIVES_NODE, DriveBusCodec, DriveBusServer
from cards_hardware.protocol.codec import encode, unpack
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.schema import MAJOR
from cards_hardware.protocol.table import MESSAGES


def command(tick=1, *, enable=1, currents=(0.5, -0.25), source=0):
    values = {"muscles": len(currents), "enable": enable, "tick": tick, "source_t_us": source,
              "current": np.array(currents)}  # fmt: skip
    return encode("DRIVE_COMMAND", values, node=1, seq=0, t_us=5)


def altered(data, **changes):
    """The same frame with other attributes."""
    (frame,) = FrameDecoder().feed(data)
    values = {name: getattr(frame, name) for name in Frame.__slots__} | changes
    return encode_frame(Frame(**values))


@pytest.mark.parametrize(("enable", "on"), [(0, False), (1, True), (2, False)])
def test_drives_are_on_for_a_one_and_nothing_else(enable, on):
    (found,) = DriveBusCodec(2, 0).feed(command(enable=enable))
    assert found.enabled is on


def test_what_is_no_command_for_so_many_drives_is_ignored():
    (frame,) = FrameDecoder().feed(command())
    bus = DriveBusCodec(2, 0)
    for data in (
        altered(command(), major=(MAJOR + 1) % 16),
        altered(command(), type=MESSAGES["DRIVE_STATE"].id),
        altered(command(), payload=frame.payload[:-1]),
        command(currents=(0.5,)),
        command(currents=(0.5, 0.5, 0.5)),
    ):
        assert bus.feed(data) == []
    assert (bus.commands, bus.ignored, bus.damaged) == (0, 5, 0)
    (found,) = bus.feed(altered(command(7), payload=frame.payload + b"new"))
    assert found.currents == pytest.approx([0.5, -0.25])
    assert (bus.commands, bus.ignored) == (1, 5)


def test_half_a_frame_is_forgotten_with_its_connection():
    bus, data = DriveBusCodec(2, 0), command()
    assert bus.feed(data[:9]) == []
    bus.reset()
    (found,) = bus.feed(data)
    assert (found.tick, bus.damaged) == (1, 0)


def test_states_are_numbered_and_their_clock_wraps():
    bus = DriveBusCodec(1, 0)
    zero = (np.zeros(1, np.int32), np.zeros(1, np.int16), np.zeros(1))
    data = b"".join(
        bus.state(i, 2**32 + i, (0, 25.0, 24.0), zero, np.zeros(0, np.int32)) for i in range(257)
    )
    frames = FrameDecoder().feed(data)
    assert np.all(np.diff([frame.seq for frame in frames]) % 256 == 1)
    assert [frame.t_us for frame in frames] == list(range(257))
    assert {frame.node for frame in frames} == {DRIVES_NODE}
    assert [unpack(frame)["tick"] for frame in frames[:3]] == [0, 1, 2]


class World:
    """Sensors that give what the test says."""

    def __init__(self):
        self.wires, self.tensions, self.q = np.arange(4) * 10, np.arange(4) + 1, np.arange(3) + 5
        self.sensors = SimpleNamespace(
            positions=lambda wires: wires, loads=lambda tensions: tensions, joints=lambda q: q
        )
        self.drives = SimpleNamespace(
            temperature=np.array([[0.0] * 4, [30.0, 31.0, 32.0, 33.0]]),
            supply_voltage=23.5,
            current=np.array([0.0, 0.1, 0.2, 0.3]),
        )


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "bus")


def connect(bus):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(20.0)
    peer.connect(bus.path)
    bus.accept()
    return peer


def states(peer, count=1):
    decoder, found = FrameDecoder(), []
    while len(found) < count:
        found += [unpack(frame) for frame in decoder.feed(peer.recv(65536))]
    return found


@pytest.mark.parametrize(
    ("muscles", "joints"), [((2, 0), (1,)), ((1, 2, 3), (0, 1)), ((3,), ()), ((0, 1), (2, 0))]
)
def test_a_board_reads_its_own_sensors_in_its_own_order(path, muscles, joints):
    bus = DriveBusServer(path, World(), muscles, joints)
    peer = connect(bus)
    for tick in range(4):
        bus.answer(tick, 77)
    found = states(peer, 4)
    for tick, values in enumerate(found):
        assert values["tick"] == tick
        assert values["position"].tolist() == [10 * m for m in muscles]
        assert values["load"].tolist() == [m + 1 for m in muscles]
        assert values["current"] == pytest.approx([0.1 * m for m in muscles])
        assert values["joint"].tolist() == [j + 5 for j in joints]
        assert values["vbus"] == pytest.approx(23.5)
        # one housing after the other
        assert values["temperature"] == pytest.approx(30.0 + muscles[values["slow"]])
    assert {values["slow"] for values in found} == set(range(len(muscles)))
    peer.close()
    bus.close()


def test_a_connection_is_dropped_when_the_board_is_gone_and_taken_again(path):
    bus = DriveBusServer(path, World(), (0, 1), ())
    bus.answer(1, 1)  # nobody there: nothing happens
    peer = connect(bus)
    peer.sendall(command(3) + command(4)[:5])
    while not (found := bus.read()):
        pass
    assert [item.tick for item in found] == [3]
    peer.close()
    assert bus.read() == []
    assert bus.peer is None
    again = connect(bus)
    again.sendall(command(5))
    while not (found := bus.read()):
        pass
    assert [item.tick for item in found] == [5]
    assert (bus.connections, bus.frames.damaged, bus.frames.commands) == (2, 0, 2)
    third = connect(bus)
    assert again.recv(1) == b""  # the old one is gone
    assert bus.connections == 3
    third.close()
    bus.close()


def test_the_socket_replaces_an_old_one_and_is_removed(path, tmp_path):
    (tmp_path / "bus").write_text("of a plant that was killed")
    bus = DriveBusServer(path, World(), (0,), ())
    assert (tmp_path / "bus").is_socket()
    bus.close()
    assert not (tmp_path / "bus").exists()
    bus.close()
    wrong = str(tmp_path / "none" / "bus")
    with pytest.raises(CardsError, match=f"drive bus {wrong} cannot be made: "):
        DriveBusServer(wrong, World(), (0,), ())
