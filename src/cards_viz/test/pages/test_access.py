"""Who may open a page and who may command: token, Host, Origin."""

import contextlib
import http.client
import logging
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from cards_core.errors import CardsError
from cards_viz.pages import access
from cards_viz.pages.access import Access, RefusedError, Role

TOKEN = "a-token-of-the-tests"
HERE = Access("127.0.0.1", TOKEN)
PATH = f"/?token={TOKEN}"
PLACE = "127.0.0.1:8080"


def role(path=PATH, host=PLACE, origin=f"http://{PLACE}", opens=True, here=HERE):
    return here.role(path, host, origin, socket=opens)


@pytest.mark.parametrize("opens", [True, False])
def test_tokens_give_roles(opens):
    assert role(opens=opens) is Role.OPERATOR
    spectator = access.spectator_token(TOKEN)
    assert spectator != TOKEN
    assert role(f"/?token={spectator}", opens=opens) is Role.SPECTATOR
    # the token of the spectators of spectators is none
    with pytest.raises(RefusedError, match="wrong token"):
        role(f"/?token={access.spectator_token(spectator)}", opens=opens)


@pytest.mark.parametrize(
    "path",
    ["/", "/?token=", "/?token=wrong", f"/?token={TOKEN[:-1]}", f"/?token={TOKEN}&token=x",
     f"/?TOKEN={TOKEN}", f"/#token={TOKEN}", "/?token=é", "/?token=\udce9", f"/{TOKEN}",
     f"http://[]/?token={TOKEN}", f"//[x/?token={TOKEN}"],
)  # fmt: skip
@pytest.mark.parametrize("opens", [True, False])
def test_without_the_token_nothing_is_answered(path, opens):
    with pytest.raises(RefusedError, match="token"):
        role(path, opens=opens)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "127.0.0.1.evil.example:8080", "localhost.evil.example",
     "", None, "[::1", "@127.0.0.1.example:8080", "127.0.0.1:8080@evil.example"],
)  # fmt: skip
@pytest.mark.parametrize("opens", [True, False])
def test_names_of_others_are_refused(host, opens):
    """DNS rebinding: the browser asks us, but for another machine."""
    with pytest.raises(RefusedError, match="is not this machine"):
        role(host=host, origin=f"http://{host}", opens=opens)


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1:9999", "[::1]:8080", "192.0.2.7:8080", "LOCALHOST:8080"]
)
def test_names_of_this_machine(host):
    assert role(host=host, origin=f"http://{host}") is Role.OPERATOR


def test_own_name_of_the_machine():
    host = f"{socket.gethostname()}:8080"
    assert role(host=host, origin=f"http://{host}") is Role.OPERATOR
    named = Access("robot.lan", TOKEN)
    assert role(host="robot.lan", origin="http://robot.lan", here=named) is Role.OPERATOR


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1:8081", "http://localhost:8080", "null", "", None,
     "http://127.0.0.1", f"file://{PLACE}", f"http://{PLACE}.evil.example", PLACE],
)  # fmt: skip
def test_websockets_of_other_pages_are_refused(origin):
    with pytest.raises(RefusedError, match="Origin"):
        role(origin=origin)


def test_a_visit_has_no_origin():
    assert role(origin=None, opens=False) is Role.OPERATOR
    with pytest.raises(RefusedError, match="Origin"):
        role(origin="http://evil.example", opens=False)


def test_one_token_for_a_process_and_its_children(monkeypatch):
    monkeypatch.delenv(access.VARIABLE, raising=False)
    made = access.token()
    assert made == access.token()
    assert len(made) >= 32
    monkeypatch.delenv(access.VARIABLE)
    assert access.token() != made
    monkeypatch.setenv(access.VARIABLE, "short")
    with pytest.raises(CardsError, match="CARDS_TOKEN is not a token"):
        access.token()


def test_addresses():
    assert access.page_url("127.0.0.1", 80, "t") == "http://127.0.0.1:80/?token=t"
    assert access.page_url("::1", 80, "t") == "http://[::1]:80/?token=t"
    assert access.page_port("http://[::1]:81/?token=t") == 81
    assert "0.0.0.0" not in access.page_url("0.0.0.0", 80, "t")
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert access.network_note(host) == ""
    for host in ("0.0.0.0", "::", "192.0.2.7", "robot.lan"):
        assert "who has its link can command" in access.network_note(host)


def test_refusals_are_logged_once(caplog):
    log = access.RefusalLog(8080)
    for _ in range(50):
        log.note("wrong token")
    assert len(caplog.records) == 1
    for k in range(100):
        log.note(f"Origin {k}")
    assert len(caplog.records) == access.REFUSALS_LOGGED
    assert "further refusals are not logged" in caplog.records[-1].getMessage()


# A page ----------------------------------------------------------------------------------------


class Recorder:
    """Takes the commands of a page."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *given: self.calls.append((name, *given))


@pytest.fixture(scope="module")
def opened(planar_2r):
    pytest.importorskip("viser", reason="viser is not installed")
    from cards_viz.muscles.page import MusclePage

    commands = Recorder()
    with MusclePage(planar_2r, commands, port=0) as page:
        yield page, commands


def message_of(page):
    """A click on the emergency stop, as a browser sends it."""
    import msgspec

    button = page._run_panel._estop
    update = {"value": True}
    name = "GuiUpdateMessage"
    return msgspec.msgpack.encode({"type": name, "uuid": button._impl.uuid, "updates": update})


def camera():
    import msgspec

    zero = [0.0, 0.0, 0.0]
    return msgspec.msgpack.encode(
        {"type": "ViewerCameraMessage", "wxyz": [1.0, *zero], "position": [1.0, 1.0, 1.0],
         "fov": 0.7, "near": 0.01, "far": 10.0, "image_height": 100, "image_width": 100,
         "look_at": zero, "up_direction": [0.0, 0.0, 1.0]}
    )  # fmt: skip


def command(page, commands, *, token=None, origin=None, host=None):
    """Try to stop the robot through a websocket; return the status of a refusal, else None."""
    import viser
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    place = f"127.0.0.1:{page.port}"
    url = f"ws://{host or place}/" + (f"?token={token}" if token else "")
    try:
        with connect(
            url,
            sock=socket.create_connection(("127.0.0.1", page.port)),
            origin=origin or f"http://{place}",
            subprotocols=[f"viser-v{viser.__version__}"],
            open_timeout=60.0,
        ) as channel:
            channel.recv(timeout=60.0)
            channel.send(camera())
            channel.send(message_of(page))
            end = time.monotonic() + 2.0
            while time.monotonic() < end and not commands.calls:
                time.sleep(0.02)
    except InvalidStatus as refusal:
        return refusal.response.status_code
    return None


@pytest.mark.serial
def test_the_link_of_a_read_only_process_commands_nothing(planar_2r, monkeypatch):
    pytest.importorskip("viser", reason="viser is not installed")
    from cards_viz.muscles.page import MusclePage

    monkeypatch.setenv(access.VARIABLE, TOKEN)
    monkeypatch.setenv(access.READ_ONLY, "1")
    commands = Recorder()
    with MusclePage(planar_2r, commands, port=0) as page:
        assert page.url == page.spectator_url == access.page_url("127.0.0.1", page.port)
        assert TOKEN not in page.url
        assert access.network_note("0.0.0.0") == "", "there is no second link to tell"
        token = page.url.partition("token=")[2]
        assert command(page, commands, token=token) is None
        assert commands.calls == []
        # who has set the token still commands
        assert command(page, commands, token=TOKEN) is None
        assert commands.calls == [("estop", True)]


@pytest.mark.parametrize("given", ["yes", "true", " 1", "2"])
def test_read_only_is_0_or_1(monkeypatch, given):
    monkeypatch.setenv(access.READ_ONLY, given)
    with pytest.raises(CardsError, match="CARDS_READ_ONLY is"):
        access.page_url("127.0.0.1", 8080)


@pytest.mark.serial
def test_only_the_token_commands(opened, caplog):
    page, commands = opened
    given = dict(part.split("=") for part in urlsplit(page.url).query.split("&"))["token"]
    hostile = [
        {"token": None},
        {"token": "wrong"},
        {"token": given, "origin": "http://evil.example"},
        {"token": given, "host": "evil.example"},
        {"token": given, "host": "evil.example", "origin": "http://evil.example"},
    ]
    with caplog.at_level(logging.WARNING, logger=access.LOG.name):
        for attempt in hostile * 3:
            assert command(page, commands, **attempt) == 403
    assert commands.calls == []
    # four reasons, each logged once
    assert len({one.getMessage() for one in caplog.records}) == len(caplog.records) == 4
    spectator = urlsplit(page.spectator_url).query.partition("=")[2]
    caplog.clear()
    for _ in range(2):
        assert command(page, commands, token=spectator) is None  # may look
    assert commands.calls == []
    assert [one.getMessage() for one in caplog.records if "spectator" in one.getMessage()] == [
        f"page on port {page.port}: request refused: a command of a spectator"
    ]
    assert command(page, commands, token=given) is None
    assert commands.calls == [("estop", True)]


@pytest.mark.serial
def test_the_page_itself_needs_the_token(opened):
    page, _ = opened

    def get(path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60.0)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read(), answer.headers
        connection.close()
        return found

    query = urlsplit(page.url).query
    status, body, headers = get(f"/?{query}")
    assert status == 200
    assert b"set_server" in body
    assert headers["Cache-Control"] == "no-store"
    assert b'dataset.role = "operator"' in body
    status, body, _ = get(f"/?{urlsplit(page.spectator_url).query}")
    assert status == 200
    assert b'dataset.role = "spectator"' in body
    for path in ("/", "/?token=wrong", "/index.html"):
        status, body, _ = get(path)
        assert status == 403
        assert b"needs its link" in body
    assert get(f"/?{query}", Host="evil.example")[0] == 403
    assert get(f"/../../etc/passwd?{query}")[0] == 404


@pytest.mark.serial
def test_nobody_opens_a_tunnel_and_garbage_ends_nothing(opened):
    import msgspec
    import viser
    from websockets.sync.client import connect

    page, commands = opened
    commands.calls.clear()
    place = f"127.0.0.1:{page.port}"
    with connect(
        f"ws://{place}/?{urlsplit(page.url).query}",
        origin=f"http://{place}",
        subprotocols=[f"viser-v{viser.__version__}"],
        open_timeout=60.0,
    ) as channel:
        channel.recv(timeout=60.0)
        channel.send(camera())
        channel.send(msgspec.msgpack.encode({"type": "ShareUrlRequest"}))
        for garbage in (b"", b"\xff\xff", b"\x80", msgspec.msgpack.encode({"type": "No"}), "text"):
            channel.send(garbage)
        channel.send(message_of(page))  # still heard
        end = time.monotonic() + 30.0
        while time.monotonic() < end and not commands.calls:
            time.sleep(0.02)
    assert commands.calls == [("estop", True)]
    assert page.server._share_tunnel is None


@pytest.mark.serial
def test_a_viser_that_cannot_be_guarded_serves_nothing(planar_2r, monkeypatch):
    from cards_viz.pages import guard

    @contextlib.contextmanager
    def nothing(*_):
        yield []

    monkeypatch.setattr(guard, "_completed", nothing)
    with pytest.raises(CardsError, match="would let anybody command"):
        guard.guarded_server("127.0.0.1", 0, "x", HERE)


LINK = f"http://127.0.0.1:8123/?token={TOKEN}"


@pytest.fixture
def session(tmp_path, monkeypatch):
    folder = tmp_path / "session"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.delenv(access.READ_ONLY, raising=False)
    return folder


def test_the_link_of_a_node_is_in_a_file_for_this_user(session, monkeypatch):
    before = os.umask(0)
    try:
        file, remove = access.tell_link(LINK, "http://127.0.0.1:8123/?token=s")
    finally:
        os.umask(before)
    assert file.name == "page-8123"
    assert file.parent.parent == session / "cards"
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.read_text() == f"{LINK}\nspectators: http://127.0.0.1:8123/?token=s\n"
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv(access.READ_ONLY, "1")
    other, remove_other = access.tell_link("http://a:8123/?token=s", "http://a:8123/?token=s")
    assert other.read_text() == "http://a:8123/?token=s\n"
    assert file.exists()  # of a process that lives
    remove()
    remove_other()
    assert list((session / "cards").iterdir()) == []


def test_the_link_of_a_node_that_was_killed_goes_when_the_next_page_is_told(session):
    program = (
        "import os, signal\nfrom cards_viz.pages.access import tell_link\n"
        f"kept = tell_link({LINK!r}, 'x')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (session / "cards").glob("**/page-8123")
    file, remove = access.tell_link("http://127.0.0.1:8124/?token=t", "http://127.0.0.1:8124/")
    assert not left.exists()
    assert list((session / "cards").glob("**/page-*")) == [file]
    remove()


def test_the_terminal_shows_the_link_wherever_the_output_goes(session):
    program = f"from cards_viz.pages.access import tell_link; tell_link({LINK!r}, 'x')"
    child, terminal = pty.fork()
    if child == 0:  # it has a terminal, but no output there
        os.dup2(0, 9)  # which stays as long as somebody has it
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        os.execve(sys.executable, [sys.executable, "-c", program], environment)
    shown = b""
    with contextlib.suppress(OSError):  # Linux: the other end is closed
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    assert os.waitpid(child, 0)[1] == 0
    assert f"open {LINK}" in shown.decode()


def test_what_is_printed_of_objects_has_no_token():
    assert TOKEN not in repr(access.Access("127.0.0.1", TOKEN))
    with pytest.raises(CardsError, match="has no port") as error:
        access.page_port(f"http://127.0.0.1/?token={TOKEN}")
    assert TOKEN not in str(error.value)
