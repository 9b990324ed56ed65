"""A small web server for the page's cluster view of a running GT server: it serves the tape.

`python -m gt.timeline -p PORT` runs it. The page is triton_viz's, of which only the built files are needed.
"""

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gt.client.connection import RemoteConnection
from gt.errors import GTError

HOST = "127.0.0.1"
USUAL_PORT = 8001
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


def static_files() -> Path:
    """The folder of the page's built files. Raises ValueError if triton_viz is not installed."""
    # Located without an import: only the files are needed.
    found = importlib.util.find_spec("triton_viz")
    if found is None or not found.submodule_search_locations:
        raise ValueError("the page is part of triton_viz, which is not installed: pip install tapestry")
    return Path(found.submodule_search_locations[0]) / "static"


class LivePage:
    """Serves the page on loopback: it listens when it is created, and answers while `run` runs."""

    def __init__(self, connection: RemoteConnection, port: int | None = None) -> None:
        files = static_files()
        shown = ["index.html", *(f"assets/page{ending}" for ending in (".js", ".css"))]
        # No other files are served, whatever the path of a request is.
        self._files = {f"/{name}": ((files / name).read_bytes(), _TYPES[Path(name).suffix]) for name in shown}
        self._files["/"] = self._files["/index.html"]
        self._connection = connection
        self._one_at_a_time = threading.Lock()
        self._server = _listen(port, _handler(self))
        self.address = f"http://{HOST}:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Answer requests until `stop` is called from another thread, or Ctrl-C is pressed."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """Make `run` return. May be called from any other thread."""
        self._server.shutdown()

    def answer(self, path: str) -> tuple[int, bytes, str]:
        """The status, the body and its type for a path."""
        url = urlsplit(path)
        if url.path in self._files:
            return 200, *self._files[url.path]
        if url.path == "/api/launches":
            return _json(200, {"launches": [], "tape": True})
        if url.path != "/api/tape":
            return _json(404, {"error": f"There is nothing at {url.path[:80]}: this page shows a cluster."})
        start = parse_qs(url.query).get("start", ["0"])[0]
        if not (start.isascii() and start.isdecimal() and len(start) < 16):
            return _json(400, {"error": f"start must be an integer, not {start[:40]!r}."})
        try:
            with self._one_at_a_time:
                lines = self._connection.get_tape(int(start))
        except GTError as error:
            return _json(502, {"error": f"The GT server does not answer any more: {error}."})
        name = f"GT server at {self._connection.address}"
        piece = {"name": name, "text": lines.text, "start": lines.first, "end": lines.next, "live": True}
        return _json(200, {**piece, "size": lines.next})


def _json(status: int, body: object) -> tuple[int, bytes, str]:
    return status, json.dumps(body).encode(), "application/json"


def _handler(page: LivePage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers the page."""

        timeout = 10

        def do_GET(self) -> None:
            """Answer a request if its Host is this machine: protects against DNS rebinding."""
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if host not in (HOST, "localhost"):
                status, body, kind = _json(403, {"error": f"This page is at {page.address} only."})
            else:
                status, body, kind = page.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log requests."""

    return Handler


def _listen(port: int | None, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """A server at this port, and no other; without one, at the usual port or any that is free."""
    try:
        return ThreadingHTTPServer((HOST, USUAL_PORT if port is None else port), handler)
    except OSError as error:
        if port is None:
            return ThreadingHTTPServer((HOST, 0), handler)
        raise OSError(f"port {port} cannot be used ({error.strerror}): choose another, or 0") from error
