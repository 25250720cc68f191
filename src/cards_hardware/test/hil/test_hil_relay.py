"""The cable between board and bridge, as tests disturb it."""

import os
import time
import tty

import pytest

from cards_core.errors import CardsError
from cards_hardware.hil.relay import Relay
from cards_hardware.protocol.codec import encode
from cards_hardware.protocol.frames import FrameDecoder

pytestmark = pytest.mark.serial


@pytest.fixture
def board():
    """A port without a board: its master side."""
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    yield master, os.ttyname(slave)
    os.close(master)
    os.close(slave)


def hello(number):
    values = {"min_major": 1, "max_major": 1, "nonce": number}
    return encode("HELLO", values, node=1, seq=number % 256, t_us=number)


def read(number, count, patience=5.0):
    """Return the frames that come, waiting for so many."""
    decoder, frames = FrameDecoder(), []
    end = time.monotonic() + patience
    while len(frames) < count and time.monotonic() < end:
        try:
            frames += decoder.feed(os.read(number, 4096))
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            break
    return frames


def open_link(link):
    return os.open(link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)


def test_frames_pass_both_ways_and_are_kept(board, tmp_path):
    master, port = board
    with Relay(port, tmp_path / "port") as relay:
        bridge = open_link(relay.link)
        for number in range(5):
            os.write(bridge, hello(number))
        assert [frame.t_us for frame in read(master, 5)] == list(range(5))
        os.write(master, hello(77))
        assert [frame.t_us for frame in read(bridge, 1)] == [77]
        heard = relay.frames("HELLO")
        assert [(item.direction, item.frame.t_us) for item in heard] == [
            *(("to_board", number) for number in range(5)),
            ("to_host", 77),
        ]
        relay.inject(hello(9))
        assert [frame.t_us for frame in read(master, 1)] == [9]
        os.close(bridge)


def test_a_cable_that_is_out_and_in_again(board, tmp_path):
    master, port = board
    with Relay(port, tmp_path / "port") as relay:
        bridge = open_link(relay.link)
        relay.unplug()
        assert not relay.link.exists()
        assert read(bridge, 1, 0.5) == []
        os.close(bridge)
        os.write(master, hello(1))
        end = time.monotonic() + 5.0
        while not relay.frames("HELLO"):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert not relay.frames("HELLO")[0].passed
        relay.plug()
        bridge = open_link(relay.link)
        os.write(bridge, hello(2))
        os.write(master, hello(3))
        assert [frame.t_us for frame in read(master, 1)] == [2]
        assert [frame.t_us for frame in read(bridge, 1)] == [3]
        os.close(bridge)


def test_byte_errors_lose_frames_and_nothing_else(board, tmp_path):
    master, port = board
    with Relay(port, tmp_path / "port", seed=1) as relay:
        relay.error_rate = 0.01
        bridge = open_link(relay.link)
        got = []
        for start in range(0, 400, 20):
            for number in range(start, start + 20):
                os.write(bridge, hello(number))
            got += read(master, 20, 0.1)
        relay.error_rate = 0.0
        for number in (400, 401):  # the first may close a damaged frame
            os.write(bridge, hello(number))
        got += read(master, 2, 0.5)
        os.close(bridge)
    stamps = [frame.t_us for frame in got]
    assert stamps == sorted(set(stamps))
    assert 200 < len(stamps) < 401
    assert stamps[-1] == 401


def test_a_board_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(CardsError, match="no_such_port cannot be opened"),
        Relay(tmp_path / "no_such_port", tmp_path / "port"),
    ):
        pass


def disturbed(rate, data, seed=0):
    relay = Relay("/dev/none", "/dev/none", seed=seed)
    relay.error_rate = rate
    return relay._disturbed(data)


def test_bytes_are_changed_in_one_bit_lost_or_followed_by_another():
    """A third each, of as many as the rate says."""
    count = 30_000
    assert disturbed(0.0, b"\xff" * 100) == b"\xff" * 100
    # with every byte disturbed: one bit less, or followed by some byte, or nothing
    out = disturbed(1.0, bytes(count))
    assert len(out) == pytest.approx(count, rel=0.03)  # as many lost as added
    single = sum(byte.bit_count() == 1 for byte in out)
    # bytes of one bit are those that were changed, and 8 of 256 of those that were added
    assert single == pytest.approx(count / 3 * (1.0 + 8 / 256), rel=0.04)
    assert out.count(0) == pytest.approx(count / 3 * (1.0 + 1 / 256), rel=0.04)
    assert {byte for byte in out if byte.bit_count() == 1} == {1 << bit for bit in range(8)}
    few = disturbed(0.01, bytes(count))
    assert sum(byte != 0 for byte in few) == pytest.approx(count * 0.01 * 2 / 3, rel=0.2)
    assert disturbed(0.1, bytes(1000), seed=1) == disturbed(0.1, bytes(1000), seed=1)
    assert disturbed(0.1, bytes(1000), seed=1) != disturbed(0.1, bytes(1000), seed=2)


def test_what_passed_is_kept_until_it_is_drained_or_forgotten(board, tmp_path):
    master, port = board
    with Relay(port, tmp_path / "port") as relay:
        assert relay.plugged
        bridge = open_link(relay.link)
        os.write(bridge, hello(1))
        assert len(read(master, 1)) == 1
        assert [item.passed for item in relay.frames()] == [True]
        assert relay.frames("IDENT") == []
        assert relay.frames("HELLO", "to_host") == []
        assert len(relay.frames("HELLO", "to_board")) == 1
        assert [item.frame.t_us for item in relay.drain()] == [1]
        assert relay.frames() == relay.drain() == []
        relay.inject(hello(2))
        assert [frame.t_us for frame in read(master, 1)] == [2]
        assert relay.frames() == []  # not of the host
        os.write(bridge, hello(3))
        assert len(read(master, 1)) == 1
        relay.forget()
        assert relay.frames() == []
        relay.unplug()
        assert not relay.plugged
        assert not (tmp_path / "port").exists()
        os.close(bridge)
    assert not relay.plugged
