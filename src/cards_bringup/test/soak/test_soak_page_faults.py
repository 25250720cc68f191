"""A hostile page is told from one that is let in."""

import http.server
import threading

import pytest

from cards_bringup.soak import page_faults

pytestmark = pytest.mark.serial


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as a page that looks at the token alone would."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        right = "token=right" in self.path
        upgrade = self.headers.get("Upgrade")
        self.send_response(403 if not right else 101 if upgrade else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def port():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_what_a_careless_page_lets_in(port):
    seen, let_in = page_faults.intrude(port, "right", 0.0)
    assert seen == {"101": 3, "403": 3}
    assert let_in == [
        "another host: status 101",
        "another origin: status 101",
        "origin null: status 101",
    ]


def test_reloads(port):
    seen = page_faults.reload(port, "right", 0.5, 1)
    assert seen["200"] >= 1
    assert set(seen) <= {"200", "websocket 101"}


def test_nobody_there():
    from cards_bringup.soak.processes import free_port

    assert page_faults.request(free_port(), "/") is None
