"""The line: who may have it, what goes out first, how it ends."""

import fcntl
import os
import select
import termios
import threading
import time
import tty

import pytest

from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.codec import encode
from cards_hardware.protocol.frames import FrameDecoder

pytestmark = pytest.mark.serial

BEAT = {"state": 1, "fault": 0, "t_peer": 0}


def beat(seq=0, t_us=0):
    return encode("HEARTBEAT", BEAT, node=1, seq=seq, t_us=t_us)


class Line:
    """A pseudo-terminal whose other end a test holds."""

    def __init__(self):
        self.master, slave = os.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        os.close(slave)
        self.frames, self.arrivals, self.lost = [], [], []
        self.link = None

    def open(self, **settings):
        self.link = SerialLink(
            self.port, on_frame=self._on_frame, on_lost=self.lost.append, **settings
        )
        self.link.open()
        return self.link

    def _on_frame(self, frame, arrival):
        self.frames.append(frame)
        self.arrivals.append(arrival)

    def read(self, seconds=0.2):
        data = b""
        while select.select([self.master], [], [], seconds)[0]:
            data += os.read(self.master, 65536)
        return data

    def cut(self):
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def line():
    item = Line()
    yield item
    if item.link is not None:
        item.link.close()
    item.cut()


def eventually(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.002)


def test_frames_arrive_whole_however_they_are_cut(line):
    line.open()
    data = b"".join(beat(i) for i in range(20))
    for i in range(0, len(data), 7):
        os.write(line.master, data[i : i + 7])
    eventually(lambda: len(line.frames) == 20)
    assert [frame.seq for frame in line.frames] == list(range(20))
    assert line.link.received_bytes == len(data)
    assert line.link.decoder.errors == 0


def test_arrival_is_the_time_when_the_bytes_were_there(line):
    line.open()
    before = time.monotonic()
    os.write(line.master, beat())
    eventually(lambda: line.frames)
    assert before <= line.arrivals[0] <= time.monotonic()


def test_the_port_is_for_one_program_alone(line):
    line.open()
    other = SerialLink(line.port, on_frame=print, on_lost=print)
    with pytest.raises(HardwareError, match=f"{line.port} is in use by another program"):
        other.open()
    line.link.close()
    other.open()
    other.close()


def test_a_port_that_is_not_there(tmp_path):
    link = SerialLink(str(tmp_path / "ttyACM0"), on_frame=print, on_lost=print)
    with pytest.raises(HardwareError, match="does not exist: is the board plugged in"):
        link.open()
    link.close()


def test_a_port_that_goes_while_it_is_opened(monkeypatch):
    def gone(*_args, **_kwargs):
        raise termios.error(5, "Input/output error")  # which is no OSError

    monkeypatch.setattr("cards_hardware.boards.serial_link.serial.Serial", gone)
    link = SerialLink("/dev/null", on_frame=None, on_lost=None)
    with pytest.raises(HardwareError, match="cannot be opened"):
        link.open()


def test_a_file_is_no_port(tmp_path):
    (tmp_path / "file").write_text("")
    link = SerialLink(str(tmp_path / "file"), on_frame=print, on_lost=print)
    with pytest.raises(HardwareError, match="is not a serial port: name the device"):
        link.open()


def test_no_port_given():
    with pytest.raises(HardwareError, match="port:=/dev/ttyACM0"):
        SerialLink("", on_frame=print, on_lost=print).open()


def test_it_opens_again_after_close(line):
    for _ in range(3):
        line.open()
        line.frames.clear()
        os.write(line.master, beat())
        eventually(lambda: line.frames)
        line.link.close()
        line.link.close()
    assert not line.lost


def test_the_other_end_goes_away_and_writing_notices_it_first(line, monkeypatch):
    monkeypatch.setattr(SerialLink, "_read", lambda link: link._leftover.wait())
    line.open()
    line.cut()
    line.link.send(beat())
    assert line.lost == ["cannot write: Input/output error (unplugged?)"]


def test_the_other_end_goes_away(line):
    line.open()
    line.cut()
    eventually(lambda: line.lost)
    assert len(line.lost) == 1
    assert "unplugged" in line.lost[0]
    assert not line.link.is_open
    line.link.send(beat())  # does nothing, and does not raise
    line.link.send_command(beat())
    line.link.send_urgent(beat())


def stuff(line):
    """Fill the line until it takes no more bytes; return how many it took."""
    took = 0
    while True:
        before = line.link.sent_bytes
        line.link.send(b"\x01" * 511 + b"\0")
        time.sleep(0.01)
        took = line.link.sent_bytes
        if took == before:
            return took


def test_a_line_that_takes_nothing_is_given_up(line):
    line.open(write_timeout=0.2)
    stuff(line)
    eventually(lambda: line.lost)
    assert "takes no bytes for 0.2 s" in line.lost[0]


def test_while_the_line_is_busy_only_the_newest_command_waits_and_stops_go_first(line):
    line.open(write_timeout=20.0)
    stuff(line)
    made = []

    def frame(tag, seq):
        def encoder():
            made.append((tag, seq))
            return encode("LOG", {"level": 1, "text": f"{tag}{seq}"}, node=1, seq=seq, t_us=0)

        return encoder

    line.link.send(frame("request", 0))
    for i in range(5):
        line.link.send_command(frame("command", i))
    assert line.link.replaced == 4
    assert made == []
    decoder = FrameDecoder()
    frames = decoder.feed(line.read())
    assert made == [("command", 4), ("request", 0)]
    assert [frame.payload[2:] for frame in frames] == [b"command4", b"request0"]

    made.clear()
    stuff(line)
    line.link.send_command(frame("command", 5))
    line.link.send(frame("request", 1))
    line.link.send_urgent(frame("stop", 0))
    line.link.send_urgent(frame("stop", 1))
    line.read()
    # the command that waited is dropped: it is older than the stop
    assert made == [("stop", 0), ("stop", 1), ("request", 1)]


def test_frames_of_many_threads_do_not_mix(line):
    line.open()
    count, threads = 40, 6  # less than may wait

    def send(node):
        for i in range(count):
            line.link.send(encode("HEARTBEAT", BEAT, node=node, seq=i, t_us=i))

    data = []
    reader = threading.Thread(target=lambda: data.append(line.read(0.5)))
    reader.start()
    workers = [threading.Thread(target=send, args=(n,)) for n in range(1, threads + 1)]
    for worker in workers:
        worker.start()
    for worker in [*workers, reader]:
        worker.join()
    decoder = FrameDecoder()
    frames = decoder.feed(data[0])
    assert decoder.errors == 0
    for node in range(1, threads + 1):
        assert [f.seq for f in frames if f.node == node] == [i % 256 for i in range(count)]


def test_what_waits_is_bounded(line):
    line.open(write_timeout=20.0)
    stuff(line)
    for i in range(600):
        line.link.send(beat(i % 256))
    assert line.link.dropped >= 300


def test_a_frame_of_which_half_is_out_is_finished_first(line):
    line.open(write_timeout=20.0)
    whole = encode("LOG", {"level": 1, "text": "x" * 32}, node=1, seq=0, t_us=0)
    sent = 0
    while line.link.sent_bytes == sent * len(whole):  # until a frame is cut
        line.link.send(whole)
        sent += 1
    assert line.link.sent_bytes % len(whole)
    line.link.send_urgent(encode("ESTOP", {"reason": 1}, node=127, seq=0, t_us=0))
    decoder = FrameDecoder()
    frames = decoder.feed(line.read())
    assert decoder.errors == 0
    assert len(frames) == sent + 1
    assert frames[-1].name == "ESTOP"


def test_an_error_of_a_listener_ends_the_line_loudly(line):
    def fail(_frame, _arrival):
        raise RuntimeError("a mistake of ours")

    line.link = SerialLink(line.port, on_frame=fail, on_lost=line.lost.append)
    line.link.open()
    hook, threading.excepthook = threading.excepthook, lambda _: None
    try:
        os.write(line.master, beat())
        eventually(lambda: line.lost)
    finally:
        threading.excepthook = hook
    assert "a mistake of ours" in line.lost[0]


def test_the_terminal_is_raw(line):
    line.open()
    attributes = termios.tcgetattr(line.master)
    assert not attributes[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
    line.link.send(b"\x03\x0d\x0a\x11\x13\x00")
    assert line.read() == b"\x03\x0d\x0a\x11\x13\x00"
    assert fcntl.fcntl(line.link._fd, fcntl.F_GETFL) & os.O_NONBLOCK


def test_closing_while_a_write_finds_the_line_gone_does_not_lock_up(line, monkeypatch):
    link = line.open()
    writing, go = threading.Event(), threading.Event()
    write, number = os.write, link._fd

    def fails(fd, data):
        if fd != number:
            return write(fd, data)
        writing.set()
        go.wait(10.0)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cards_hardware.boards.serial_link.os.write", fails)
    sender = threading.Thread(target=link.send, args=(b"x",), daemon=True)
    sender.start()
    assert writing.wait(10.0)
    closer = threading.Thread(target=link.close, daemon=True)
    closer.start()
    reader = link._threads[0]
    reader.join(10.0)
    time.sleep(0.1)  # it waits for the lock of writing now
    go.set()
    sender.join(5.0)
    closer.join(5.0)
    assert not sender.is_alive()
    assert not closer.is_alive()
