"""``./cards docs``: build the documentation as a site, with a reference made from the code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cards_bringup.option_types import WholeNumber
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards docs                       runs/docs/index.html
  ./cards docs --out /tmp/site
  ./cards docs --serve               build, then show it at http://127.0.0.1:8000

A broken link, an unknown anchor, or a page in no table of contents (docs/contents.yaml) is an
error. The first use installs Sphinx into the environment (75 MB).
"""


def add_docs(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("docs", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    text = "folder of the site (default: runs/docs)"
    add("-o", "--out", type=Path, metavar="DIR", default=Path("runs", "docs"), help=text)
    add("--serve", action="store_true", help="show the site in a browser until Ctrl-C")
    text = "of the server with --serve (default: 8000)"
    add(
        "--port",
        type=WholeNumber(at_least=1, at_most=65535),
        default=8000,
        metavar="PORT",
        help=text,
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.docs_site.site import build
    from cards_core.errors import CardsError
    from cards_core.shared_files import checkout

    top = checkout()
    if top is None:
        raise CardsError("the documentation is in the repository; run ./cards docs there")
    pages = build(top, args.out, progress=lambda line: print(line, flush=True))
    print(f"{pages} pages: {args.out / 'index.html'}", flush=True)
    if args.serve:
        serve(args.out, args.port)
    return ExitCode.DONE


def serve(folder: Path, port: int) -> None:
    """Serve a folder on this machine until Ctrl-C.

    Args:
        folder: The site.
        port: TCP port on 127.0.0.1.

    Raises:
        CardsError: The port is in use.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from cards_core.errors import CardsError

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None:
            """Say nothing about requests."""

    handler = partial(Handler, directory=str(folder))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise CardsError(
            f"port {port}: {error.strerror} (expected: a free port, e.g. --port {port + 1})"
        ) from None
    with server:
        print(f"http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
        server.serve_forever()
