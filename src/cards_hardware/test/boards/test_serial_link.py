"""The line: who may have it, what goes out first, how it ends."""

import errno
import fcntl
import os
import select
import termios
import threading
import time
import tty

import pytest

from cards_hardware.boards.line_thread import COMMAND_AGE, MAX_LINES, LineThread, _library
from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.codec import encode, pack, unpack
from cards_hardware.protocol.enums import State
from cards_hardware.protocol.frames import FrameDecoder
from cards_hardware.protocol.table import MESSAGES

pytestmark = pytest.mark.serial

BEAT = {"state": 1, "fault": 0, "t_peer": 0}


def beat(seq=0, t_us=0):
    return encode("HEARTBEAT", BEAT, node=1, seq=seq, t_us=t_us)


def send(link, name, values, seq=0, **options):
    return link.send(MESSAGES[name].id, pack(name, values), seq=seq, **options)


def log(link, text, seq=0, **options):
    return send(link, "LOG", {"level": 1, "text": text}, seq, **options)


def fast_state(state, seq=0):
    """A STATE_FAST without muscles."""
    head = dict.fromkeys((field.name for field in MESSAGES["STATE_FAST"].scalars), 0)
    lists = {f.name: [] for group in MESSAGES["STATE_FAST"].groups for f in group.fields}
    values = head | lists | {"state": int(state)}
    return encode("STATE_FAST", values, node=1, seq=seq, t_us=0)


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
        self.link.node = 1
        self.link.open()
        return self.link

    def told(self, seconds=0.2):
        """Names and values of the frames that came out at the other end."""
        return [(frame.name, unpack(frame)) for frame in FrameDecoder().feed(self.read(seconds))]

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
    counts = line.link.counts()
    assert (counts.received_bytes, counts.frames, counts.damaged) == (len(data), 20, 0)


def test_damaged_frames_are_counted_and_the_next_good_one_is_found(line):
    line.open()
    good = beat(3)
    torn = good[:5] + good[7:]
    flipped = good[:6] + bytes([good[6] ^ 0x80]) + good[7:]
    os.write(line.master, torn + flipped + b"\x05" * 700 + b"\0" + beat(4))
    eventually(lambda: line.frames)
    counts = line.link.counts()
    assert [frame.seq for frame in line.frames] == [4]
    assert (counts.damaged, counts.too_long) == (3, 1)


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


def test_the_other_end_goes_away(line):
    line.open()
    line.cut()
    eventually(lambda: line.lost)
    assert len(line.lost) == 1
    assert "unplugged" in line.lost[0]
    assert not line.link.is_open
    assert not log(line.link, "nobody")  # and does not raise
    assert not log(line.link, "nobody", urgent=True)
    line.link.open_gate()
    assert line.link.gate == 0


def stuff(line):
    """Fill the line until it takes no more bytes; return how many it took."""
    sent = 0
    while True:
        before = line.link.counts().sent_bytes
        line.link.send(MESSAGES["LOG"].id, b"\x01" * 480, seq=sent % 256)
        sent += 1
        time.sleep(0.02)
        if line.link.counts().sent_bytes == before:
            return sent


def test_a_line_that_takes_nothing_is_given_up(line):
    line.open(write_timeout=0.2)
    stuff(line)
    eventually(lambda: line.lost)
    assert "takes no bytes for 0.2 s" in line.lost[0]


def tension(link, newtons):
    values = {"mask": 1, "tension": [newtons], "slew": [0.0]}
    return link.command(MESSAGES["CMD_TENSION"].id, pack("CMD_TENSION", values))


def now_us():
    return time.monotonic_ns() // 1000


def command(links, newtons, *, late=0.0):
    """Command these lines together; True if all of them listen."""
    parts = [tension(link, newtons) for link in links]
    return links[0].thread.command(parts, now_us() - round(late * 1e6)) is None


def commanded(told):
    return [values["tension"][0] for name, values in told if name == "CMD_TENSION"]


def test_emergency_stops_go_before_all_that_waits_and_no_command_follows(line):
    line.open(write_timeout=20.0)
    line.link.open_gate()
    stuff(line)
    log(line.link, "request")
    assert command([line.link], 20.0)
    assert send(line.link, "ESTOP", {"reason": 1}, node=127, urgent=True)
    assert line.link.gate == 0
    assert not command([line.link], 30.0)
    names = [name for name, _ in line.told(0.5)]
    assert names.index("ESTOP") < len(names) - 1  # also before what came first
    assert "CMD_TENSION" not in names
    counts = line.link.thread.command_counts()
    assert (counts.sent, counts.withheld) == (0, 2)


def test_a_command_that_waited_too_long_is_never_sent(line):
    line.open(write_timeout=20.0)
    line.link.open_gate()
    stuff(line)
    assert command([line.link], 20.0)
    eventually(lambda: line.link.thread.command_counts().stale == 1)
    assert commanded(line.told(0.5)) == []
    assert command([line.link], 30.0, late=1.1 * COMMAND_AGE)
    eventually(lambda: line.link.thread.command_counts().stale == 2)
    assert commanded(line.told()) == []


def test_the_newest_command_replaces_one_that_waits(line):
    line.open(write_timeout=20.0)
    line.link.open_gate()
    stuff(line)
    future = -1.0  # so that none is too old, however long this machine stands still
    for newtons in (20.0, 30.0, 40.0):
        assert command([line.link], newtons, late=future - newtons * 1e-3)
    assert commanded(line.told(0.5)) == [40.0]
    counts = line.link.thread.command_counts()
    assert (counts.sent, counts.replaced, counts.stale) == (1, 2, 0)


@pytest.fixture
def pair():
    """Two lines of one thread, with open gates."""
    thread = LineThread()
    items = Line(), Line()
    for item in items:
        item.open(thread=thread, write_timeout=20.0).open_gate()
    yield items
    for item in items:
        item.link.close()
        item.cut()


def test_a_command_goes_to_all_boards(pair):
    one, two = pair
    assert command([one.link, two.link], 20.0)
    assert commanded(one.told()) == commanded(two.told()) == [20.0]


def test_a_board_that_is_told_nothing_must_be_able_to_listen_all_the_same(pair):
    one, two = pair
    number = MESSAGES["CMD_TENSION"].id
    send_to_one = [tension(one.link, 20.0), two.link.command(number, b"")]
    assert one.link.thread.command(send_to_one, now_us()) is None
    assert (commanded(one.told()), commanded(two.told())) == ([20.0], [])
    two.link.close_gate()
    assert one.link.thread.command(send_to_one, now_us()) == 1
    assert commanded(one.told()) == []


def test_a_board_whose_line_is_full_keeps_the_command_from_all(pair):
    one, two = pair
    stuff(two)
    assert command([one.link, two.link], 20.0)
    eventually(lambda: one.link.thread.command_counts().stale == 1)
    assert commanded(one.told()) == []
    assert commanded(two.told(0.5)) == []
    assert command([one.link, two.link], 30.0, late=-1.0)  # the line is free again
    assert commanded(one.told()) == commanded(two.told()) == [30.0]


def test_a_board_that_relaxes_closes_its_gate_and_so_stops_all(pair):
    one, two = pair
    for seq, state in enumerate((State.ARMED, State.ACTIVE, State.HOLD)):
        os.write(two.master, fast_state(state, seq))
    eventually(lambda: len(two.frames) == 3)
    assert command([one.link, two.link], 20.0)
    os.write(two.master, fast_state(State.RELAX, 3))
    eventually(lambda: two.link.gate == 0)
    assert not command([one.link, two.link], 30.0)
    assert commanded(one.told()) == commanded(two.told()) == [20.0]


def test_a_lost_line_stops_all(pair):
    one, two = pair
    two.cut()
    eventually(lambda: two.lost)
    assert not command([one.link, two.link], 20.0)
    assert commanded(one.told()) == []


def test_a_gate_that_was_opened_again_does_not_let_old_commands_pass(pair):
    one, two = pair
    old = [tension(one.link, 20.0), tension(two.link, 20.0)]
    two.link.close_gate()
    two.link.open_gate()
    assert one.link.thread.command(old, now_us()) == 1
    assert command([one.link, two.link], 30.0)
    assert commanded(one.told()) == commanded(two.told()) == [30.0]


def test_heartbeats_say_what_the_host_wants_and_whom_it_heard(line):
    line.open()
    line.link.beat(True)
    line.link.alive()
    eventually(lambda: line.link.counts().beats > 3)
    os.write(line.master, beat(0, t_us=4711))
    eventually(lambda: line.frames)
    line.link.open_gate()
    decoder, said = FrameDecoder(), []

    def heard():
        line.link.alive()
        frames = decoder.feed(os.read(line.master, 65536))
        said.extend(unpack(frame) for frame in frames if frame.name == "HEARTBEAT")
        return said and said[-1] == {"state": State.ACTIVE, "fault": 0, "t_peer": 4711}

    eventually(heard)
    assert said[0] == {"state": State.DISARMED, "fault": 0, "t_peer": 0}
    assert line.link.counts().beat_jitter.total == pytest.approx(line.link.counts().beats, abs=2)


def test_heartbeats_end_when_the_host_hangs_and_come_back(line):
    line.open()
    line.link.beat(True)
    eventually(lambda: line.link.counts().beats > 3)

    def silent():
        before = line.link.counts().beats
        time.sleep(0.2)
        return line.link.counts().beats == before

    eventually(silent)
    assert line.link.counts().beats >= 100  # of the second that a host may be busy
    before = line.link.counts().beats
    line.link.alive()
    eventually(lambda: line.link.counts().beats > before + 3)
    line.link.beat(False)
    eventually(silent)


def test_times_of_exchanges_are_those_of_the_line(line):
    line.open()
    before = now_us() % 2**32
    send(line.link, "TIME_SYNC", {"t1": 0, "t2": 0, "t3": 0})
    ((name, values),) = line.told()
    assert name == "TIME_SYNC"
    assert (values["t1"] - before) % 2**32 < 10_000_000
    os.write(line.master, encode("TIME_SYNC", values, node=1, seq=0, t_us=0))
    eventually(lambda: line.frames)
    counts = line.link.counts()
    assert counts.replies.total == 1
    assert counts.reply > 0.0


def test_counters_go_on_when_a_line_is_opened_again(line):
    line.open()
    link = line.link
    log(link, "one")
    eventually(lambda: link.counts().sent_bytes)
    before = link.counts().sent_bytes
    link.close()
    assert link.counts().sent_bytes == before
    link.open()
    log(link, "two")
    eventually(lambda: link.counts().sent_bytes == 2 * before)


def test_the_threads_end_with_the_last_line(pair):
    one, two = pair
    assert len(one.link.thread.thread_ids) == 2
    assert one.link.thread.scheduled in ("fifo", "nice", "normal")
    one.link.close()
    assert len(two.link.thread.thread_ids) == 2
    two.link.close()
    assert not two.link.thread.thread_ids
    assert two.link.thread.scheduled == ""


def test_frames_of_many_threads_do_not_mix(line):
    line.open()
    count, threads = 40, 6  # less than may wait

    def many(node):
        for i in range(count):
            send(line.link, "HEARTBEAT", BEAT, i, node=node)

    data = []
    reader = threading.Thread(target=lambda: data.append(line.read(0.5)))
    reader.start()
    workers = [threading.Thread(target=many, args=(n,)) for n in range(1, threads + 1)]
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
        log(line.link, "x", i % 256)
    assert line.link.counts().dropped >= 300


def test_a_frame_of_which_half_is_out_is_finished_first(line):
    line.open(write_timeout=20.0)
    sent = stuff(line)
    send(line.link, "ESTOP", {"reason": 1}, node=127, urgent=True)
    decoder = FrameDecoder()
    frames = decoder.feed(line.read())
    assert decoder.errors == 0
    assert len(frames) == sent + 1
    assert "ESTOP" in [frame.name for frame in frames[:-1]]  # before those that waited


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
    assert not attributes[1] & termios.OPOST
    text = "\x03\x0d\x0a\x11\x13\x7f"
    log(line.link, text)
    assert [values["text"] for _, values in line.told()] == [text]
    assert fcntl.fcntl(line.link._serial.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_line_is_closed_by_its_listener_and_by_others_at_once(line):
    for _ in range(20):
        link = line.open()
        line.link._on_frame = lambda _frame, _arrival, link=link: link.close()
        os.write(line.master, beat())
        closers = [threading.Thread(target=link.close) for _ in range(3)]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join(60.0)
            assert not closer.is_alive()
        assert not link.thread.thread_ids


def test_a_machine_without_a_compiler_is_told_so(line, monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    monkeypatch.setattr("cards_core.codegen.library.find_compiler", lambda: None)
    _library.cache_clear()
    try:
        with pytest.raises(HardwareError, match="no C compiler found"):
            line.open()
    finally:
        _library.cache_clear()
    assert not line.link.is_open


def test_one_thread_keeps_a_bounded_number_of_lines():
    thread = LineThread()
    lines = [Line() for _ in range(MAX_LINES + 1)]
    try:
        for item in lines[:-1]:
            item.open(thread=thread)
        with pytest.raises(HardwareError, match="16 lines at most"):
            lines[-1].open(thread=thread)
        lines[0].link.close()
        lines[-1].link.open()
    finally:
        for item in lines:
            item.link.close()
            item.cut()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "may not be opened by this user: join the gro"),
        (OSError(13, "could not open port"), "may not be opened by this user"),
        (OSError(16, "Device or resource busy"), "is in use by another program"),
        (OSError(11, "Resource temporarily unavailable"), "is in use by another program"),
        (OSError("Could not exclusively lock port"), "is in use by another program"),
        (OSError(f"({errno.ENOTTY}, 'Inappropriate ioctl')"), "is not a serial port"),
        (ValueError("no such baud rate"), "cannot be opened: no such baud rate"),
        (OSError(5, "Input/output error"), r"cannot be opened: .*Input/output error"),
    ],
)
def test_why_a_port_does_not_open_is_told(monkeypatch, error, words):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("cards_hardware.boards.serial_link.serial.Serial", fail)
    link = SerialLink("/dev/null", on_frame=print, on_lost=print)
    with pytest.raises(HardwareError, match=f"/dev/null {words}"):
        link.open()
    assert not link.is_open


def test_a_line_that_is_not_open_takes_nothing_and_says_so():
    link = SerialLink("/dev/none", on_frame=print, on_lost=print)
    assert not link.is_open
    assert not send(link, "PARAM_SAVE", {})
    for call in (link.open_gate, link.close_gate, link.alive, link.close):
        call()
    link.beat(True)
    assert link.gate == 0
    link.node = 7
    assert link.node == 7
    part = link.command(0x11, b"x")
    assert (part.line, part.gate, part.node, part.payload) == (-1, 0, 7, b"x")
    assert link.counts().frames == 0
    assert SerialLink("", on_frame=print, on_lost=print).node == 127  # whoever is there
