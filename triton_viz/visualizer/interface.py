"""The page's web server: one Flask app, on loopback, behind waitress."""

import errno
import math
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request
from waitress import wasyncore
from waitress.server import create_server
from werkzeug.exceptions import BadRequest, HTTPException, NotFound

from triton_viz.core.data import Launch, Program
from triton_viz.core.trace import launches
from triton_viz.visualizer import draw
from triton_viz.visualizer.analysis import analyze_records

HOST = "127.0.0.1"
USUAL_PORT = 8000
STATIC = Path(__file__).parents[1] / "static"

_snapshot: tuple[int, int] = (0, 0)
_analysis: dict[int, list[Any]] = {}


def update_global_data() -> None:
    """Forget what was computed, if there are new launches or records since."""
    global _snapshot
    snapshot = len(launches), sum(len(launch.records) for launch in launches)
    if snapshot != _snapshot:
        _analysis.clear()
        _snapshot = snapshot


def create_app() -> Flask:
    """The page and its API. Nothing is computed before it is asked for."""
    app = Flask(__name__, static_folder=str(STATIC), static_url_path="")
    # A name of its own that leads here must not let another site's page read what is here.
    app.config["TRUSTED_HOSTS"] = [HOST, "localhost"]

    @app.get("/")
    def index() -> Response:
        return app.send_static_file("index.html")

    @app.get("/api/launches")
    def list_launches() -> Response:
        return jsonify(launches=[_summary(launch) for launch in launches])

    @app.get("/api/data")
    def one_program() -> Response:
        update_global_data()
        launch = _find_launch(request.args.get("launch"))
        program = _parse_program(request.args.get("program", "0,0,0"), launch)
        if launch.id not in _analysis:
            _analysis[launch.id] = list(analyze_records(launch, launch.records))
        return jsonify(
            launch=_summary(launch),
            program=program,
            source={
                "file": Path(launch.file).name,
                "first_line": launch.first_line,
                "lines": launch.source.splitlines(),
            },
            tensors=[{"name": t.name, "shape": t.shape, "dtype": t.dtype} for t in launch.tensors],
            analysis=_analysis[launch.id],
            visualization_data=draw.get_visualization_data(launch, program),
        )

    @app.errorhandler(HTTPException)
    def explain(error: HTTPException) -> tuple[Response, int]:
        return jsonify(error=error.description), error.code or 500

    return app


def _summary(launch: Launch) -> dict[str, Any]:
    return {"id": launch.id, "kernel": launch.kernel, "grid": launch.grid, "records": len(launch.records)}


def _find_launch(id: str | None) -> Launch:
    for launch in reversed(launches):
        if id is None or str(launch.id) == id:
            return launch
    raise NotFound(f"There is no launch {id}." if launches else "No kernel was traced yet.")


def _parse_program(text: str, launch: Launch) -> Program:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise BadRequest(f"A program is three numbers such as 0,0,0, not {text[:40]!r}.")
    x, y, z = (int(part) for part in parts)
    if any(index >= size for index, size in zip((x, y, z), launch.grid, strict=True)):
        raise NotFound(f"The grid {launch.grid} of {math.prod(launch.grid)} programs has no ({x}, {y}, {z}).")
    return x, y, z


class PageServer:
    """The page on loopback: listening once made, answering while `run` runs."""

    def __init__(self, port: int | None = None):
        listener = _listen(port)
        self.address = f"http://{HOST}:{listener.getsockname()[1]}/"
        # Untyped: its loop, which `stop` has to reach, is not in waitress's types.
        self._server: Any = create_server(create_app(), sockets=[listener], threads=4)

    def run(self) -> None:
        """Answer requests until `stop` is called from another thread, or Ctrl-C is pressed."""
        self._server.run()
        self._server.task_dispatcher.shutdown()
        self._server.close()

    def stop(self) -> None:
        """Make `run` return. May be called from any thread."""
        # From within the server's own loop: it must not wait on a socket that another thread closes.
        self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._server._map))


def _listen(port: int | None) -> socket.socket:
    """A socket at this port, and no other; without one, at the usual port or any that is free."""
    if port is not None and not 0 <= port <= 65535:
        raise OSError(f"{port} is no port: they go from 0 to 65535")
    try:
        return socket.create_server((HOST, USUAL_PORT if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((HOST, 0))
        taken = error.errno == errno.EADDRINUSE
        why = "is taken" if taken else f"cannot be used ({error.strerror})"
        raise OSError(f"port {port} {why}: choose another, or 0 for any free one") from error


def launch(port: int | None = None, block: bool = True, open_browser: bool = True) -> str:
    """Show the page on this program's launches; the result is its address.

    Without a port it is 8000, or any free one if that is taken. With block=False the page is served from
    a thread until the program ends.
    """
    server = PageServer(port)
    stops = " (Ctrl-C stops)" if block else ""
    print(f"triton_viz: {len(launches)} launches at {server.address}{stops}", flush=True)
    if open_browser:
        webbrowser.open(server.address)
    if block:
        server.run()
    else:
        threading.Thread(target=server.run, daemon=True).start()
    return server.address
