"""The page's web server: one Flask app, on loopback, behind waitress. Answers are computed on request."""

import errno
import hmac
import linecache
import logging
import math
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from flask import Flask, Response, request
from waitress import wasyncore
from waitress.server import create_server
from werkzeug.exceptions import Forbidden, HTTPException, NotFound

from triton_viz.core.data import Access, Atomic, Launch, Load, Op, Program, Store
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.core.trace import launches
from triton_viz.visualizer import analysis, draw, metrics, payloads, sbuf, tape, tensor_tiles
from triton_viz.visualizer import request_parameters as requested
from triton_viz.visualizer.cache import Cache
from triton_viz.visualizer.raw_tensor_data import raw_tensor_data
from triton_viz.visualizer.record_columns import coverage
from triton_viz.visualizer.tooltip import element_tip
from triton_viz.visualizer.values import has_values, histogram, tensor_values

HOST = "127.0.0.1"
DEFAULT_PORT = 8000
_MOST_WAITING = 1 << 26
"""The most bytes of an answer that are buffered for a browser."""
_MOST_ASKED = 1 << 10
"""The most bytes of a request's body. No request has one; waitress stores it before the token is checked."""
STATIC = Path(__file__).parents[1] / "static"
OPS_AT_ONCE = 4000
"""The most ops of one program in one answer, which keeps it below a megabyte."""
NO_VALUES = (
    "The values of accesses were not recorded. Set triton_viz.config.values = True (or TRITON_VIZ_VALUES=1) "
    "before the kernel runs."
)
KINDS: dict[str, tuple[type[Access], ...]] = {
    "all": (Access,),
    "read": (Load, Atomic),
    "written": (Store, Atomic),
}
"""The accesses that a coverage counts, by the name in the request."""
AROUND = 3
"""The number of source lines shown before and after a line of a function that the kernel calls."""

Snapshot = tuple[int, int, int]
"""The numbers of launches and records, and the newest launch: equally many may have replaced the old ones."""

_snapshot: Snapshot = (0, 0, -1)
_updating = threading.Lock()
_cache = Cache()


def update_global_data() -> None:
    """Clear cached answers if the launches have changed.

    Does nothing unless the launch snapshot has changed. Each payload, table and tensor is computed at the
    first request for it, and cached.
    """
    global _snapshot
    newest = launches[-1].id if launches else -1
    snapshot = len(launches), sum(len(launch.records) for launch in launches), newest
    with _updating:
        if snapshot != _snapshot:
            _cache.clear()
            raw_tensor_data.clear()
            _snapshot = snapshot


def create_app(tape_path: Path | None = None, token: str | None = None) -> Flask:
    """The page and its API; with `tape_path`, also GT's instruction log. With a token, requests need it."""
    app = Flask(__name__, static_folder=str(STATIC), static_url_path="")
    if token is None:
        # Otherwise another site's page could read the answers by a host name that resolves to this machine.
        app.config["TRUSTED_HOSTS"] = [HOST, "localhost"]

    def answer(url: str, make: Callable[[], msgspec.Struct | msgspec.Raw | bytes]) -> None:
        def respond() -> Response:
            update_global_data()
            made = make()
            if isinstance(made, bytes):
                return Response(made, mimetype="application/octet-stream")
            return Response(msgspec.json.encode(made), mimetype="application/json")

        app.add_url_rule(url, url, respond)

    for url, make in ENDPOINTS.items():
        answer(url, make)
    answer("/api/launches", lambda: _launches(tape_path))
    answer("/api/tape", lambda: _tape(tape_path))

    @app.get("/")
    def index() -> Response:
        return app.send_static_file("index.html")

    @app.before_request
    def check_token() -> None:
        given = request.args.get("token") or request.cookies.get("token") or ""
        if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
            raise Forbidden("This page is shared by its link only: open the whole link, with its token.")

    @app.after_request
    def keep_token(response: Response) -> Response:
        if token is not None and request.args.get("token"):
            response.set_cookie("token", token, httponly=True, samesite="Strict")
        return response

    @app.errorhandler(HTTPException)
    def explain(error: HTTPException) -> tuple[Response, int]:
        problem = payloads.ApiProblem(error=error.description or error.name)
        return Response(msgspec.json.encode(problem), mimetype="application/json"), error.code or 500

    return app


def _launches(tape_path: Path | None) -> payloads.LaunchList:
    return payloads.LaunchList(launches=[_summary(launch) for launch in launches], tape=tape_path is not None)


def _summary(launch: Launch) -> payloads.LaunchSummary:
    kinds = [type(record).__name__ for record in launch.records]
    return payloads.LaunchSummary(
        id=launch.id,
        kernel=launch.kernel,
        grid=launch.grid,
        records=sum(1 for record in launch.records if isinstance(record, Op)),
        issues=kinds.count("Issue"),
        profiled="KernelProfile" in kinds,
        values=has_values(launch),
    )


def _program() -> msgspec.Raw:
    launch = requested.launch()
    program = requested.program(launch)
    first = requested.number("first", 0)

    def make() -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(_program_data(launch, program, first)))

    return _cache.get(("data", launch.id, program, first), make)


def _program_data(launch: Launch, program: Program, first: int) -> payloads.ProgramData:
    paths = draw.Paths()
    ops, _ = draw.get_visualization_data(launch, program, first, OPS_AT_ONCE, paths)
    return payloads.ProgramData(
        launch=_summary(launch),
        program=program,
        source=payloads.SourcePayload(
            file=Path(launch.file).name, first_line=launch.first_line, lines=launch.source.splitlines()
        ),
        tensors=[
            payloads.TensorPayload(
                name=t.name,
                shape=t.shape,
                strides=t.strides,
                dtype=t.dtype,
                address=t.address,
                itemsize=t.itemsize,
            )
            for t in launch.tensors
        ],
        paths=paths.payload(),
        visualization_data=ops,
        first=first,
        total=len(draw.collect_launch(launch, program)),
        sbuf=len(draw.events_in(launch, program)),
    )


def _sbuf() -> payloads.SbufTimeline:
    launch = requested.launch()
    program = requested.program(launch)
    return _cache.get(("sbuf", launch.id, program), lambda: sbuf.timeline(launch, program))


def _traffic() -> payloads.TrafficTable:
    launch = requested.launch()
    rows = _cache.get(("traffic", launch.id), lambda: analysis.analyze_records(launch))
    return payloads.TrafficTable(analysis=rows)


def _lines() -> payloads.LineTable:
    launch = requested.launch()
    return payloads.LineTable(lines=_cache.get(("lines", launch.id), lambda: analysis.line_heat(launch)))


def _op_code() -> payloads.OpCode:
    uuid, launch, number, _ = requested.op()
    frames = []
    for site in launch.records[number].call_path:
        if site.file == launch.file and site.function == launch.kernel:
            first, lines = launch.first_line, launch.source.splitlines()
        else:
            # A trace file may name any file: only Python sources are read, around the line.
            every = linecache.getlines(site.file) if site.file.endswith(".py") else []
            first = max(1, site.line - AROUND)
            lines = [line.rstrip("\n") for line in every[first - 1 : site.line + AROUND]]
        frames.append(
            payloads.CodeFrame(
                file=Path(site.file).name,
                line=site.line,
                function=site.function,
                first_line=first,
                lines=lines,
            )
        )
    return payloads.OpCode(uuid=uuid, frames=frames)


def _histogram() -> payloads.Histogram:
    bins = requested.number("bins", 32, least=1, most=1000)
    if "tensor" in request.args:
        launch = requested.launch()
        tensor = requested.tensor(launch)
        values, known = _values(launch, tensor, len(launch.records) - 1)
        return histogram(tensor.name, values[known], bins)
    uuid, *_ = requested.op()
    try:
        raw = raw_tensor_data[uuid]
    except KeyError:
        raise NotFound(f"The op {uuid} reads and writes no tensor.") from None
    if raw.values is None:
        raise NotFound(NO_VALUES)
    return histogram(raw.op.tensor, raw.values[raw.mask], bins)


def _values(launch: Launch, tensor: TensorInfo, upto: int) -> tuple[np.ndarray, np.ndarray]:
    if not has_values(launch):
        raise NotFound(NO_VALUES)
    requested.each_of(math.prod(tensor.shape), f"The elements of {tensor.name}")
    # A tensor changes at writes only: answers between two writes are equal.
    writes = [
        number
        for number, record in enumerate(launch.records[: upto + 1])
        if isinstance(record, Store | Atomic) and tensor.name in record.elements.tensors
    ]
    last = writes[-1] if writes else -1
    return _cache.get(("values", launch.id, tensor.name, last), lambda: tensor_values(launch, tensor, last))


def _tile() -> bytes:
    launch = requested.launch()
    tensor = requested.tensor(launch)
    window = requested.window(math.prod(tensor.shape))
    layer = requested.choice("layer", ("marks", "coverage", "values"))
    if layer == "coverage":
        kind = requested.choice("kind", tuple(KINDS))
        requested.each_of(math.prod(tensor.shape), f"The elements of {tensor.name}")
        key = ("coverage", launch.id, tensor.name, kind)
        counts = _cache.get(key, lambda: coverage(launch, tensor, KINDS[kind]))
        most = float(counts.max()) if len(counts) else 0.0
        return tensor_tiles.pack(window, {layer: window.gather(counts, "max")}, {layer: (0.0, most)})
    if layer == "values":
        upto = requested.op("op")[2] if request.args.get("op") else len(launch.records) - 1
        values, known = _values(launch, tensor, upto)
        shown = np.where(known, values, np.nan)
        limits = tensor_tiles.limits_of(shown)
        return tensor_tiles.pack(
            window, {layer: window.gather(shown, "mean")}, {layer: limits} if limits else {}
        )
    program = requested.program(launch)
    marks = np.zeros(window.across * window.down, np.uint8)
    key = ("program", launch.id, program, tensor.name)
    window.mark(marks, _cache.get(key, lambda: _touched(launch, program, tensor)), tensor_tiles.BY_PROGRAM)
    if request.args.get("op"):
        raw = raw_tensor_data.get(requested.op("op")[0])  # None: the op accesses no tensor
        if raw is not None and raw.launch is launch and tensor.name in raw.op.elements.tensors:
            window.mark(marks, draw.positions_of(raw.op, 0, tensor, masked=True), tensor_tiles.MASKED)
            window.mark(marks, draw.positions_of(raw.op, 0, tensor), tensor_tiles.BY_OP)
    return tensor_tiles.pack(window, {layer: marks}, {})


def _touched(launch: Launch, program: tuple[int, int, int], tensor: TensorInfo) -> np.ndarray:
    """The positions of all elements of a tensor that a program accessed."""
    found = [
        draw.positions_of(op, lane, tensor)
        for _, op, lane in draw.collect_launch(launch, program)
        if isinstance(op, Access) and tensor.name in op.elements.tensors
    ]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _element() -> payloads.ElementTip:
    launch = requested.launch()
    tensor = requested.tensor(launch)
    count = math.prod(tensor.shape)
    if not count:
        raise NotFound(f"{tensor.name} has no elements.")
    element = requested.number("element", most=count - 1)
    value = None
    if has_values(launch):
        upto = requested.op("op")[2] if request.args.get("op") else len(launch.records) - 1
        values, known = _values(launch, tensor, upto)
        value = values[element] if known[element] else None
    return element_tip(launch, tensor, element, requested.program(launch), value)


def _programs() -> bytes:
    launch = requested.launch()
    metric = requested.choice("metric", tuple(metrics.METRICS))
    window = requested.window(math.prod(launch.grid))
    requested.each_of(math.prod(launch.grid), f"The programs of {launch.kernel}")
    numbers = _cache.get(("programs", launch.id, metric), lambda: metrics.measure(launch, metric))
    limits = tensor_tiles.limits_of(numbers)
    how = "max" if metric == "issues" else "mean"
    return tensor_tiles.pack(
        window, {metric: window.gather(numbers, how)}, {metric: limits} if limits else {}
    )


def _issues() -> payloads.IssueList:
    launch = requested.launch()
    return _cache.get(("issues", launch.id), lambda: analysis.list_issues(launch))


def _profile() -> payloads.Profile:
    return analysis.profile_of(requested.launch())


def _tape(path: Path | None) -> payloads.TapeSlice:
    if path is None:
        raise NotFound("There is no instruction log: start with triton_viz.launch(tape=FILE).")
    start = requested.number("start") if "start" in request.args else None
    try:
        return tape.read_slice(path, start)
    except OSError as error:
        raise NotFound(f"The instruction log {path.name} cannot be read: {error.strerror}.") from None


ENDPOINTS: dict[str, Callable[[], msgspec.Struct | msgspec.Raw | bytes]] = {
    "/api/data": _program,
    "/api/sbuf": _sbuf,
    "/api/traffic": _traffic,
    "/api/lines": _lines,
    "/api/op_code": _op_code,
    "/api/histogram": _histogram,
    "/api/tensor": _tile,
    "/api/element": _element,
    "/api/programs": _programs,
    "/api/issues": _issues,
    "/api/profile": _profile,
}
"""The handler of each endpoint; `create_app` has those that need more than the launches."""


class PageServer:
    """The server of the page, on loopback unless it is shared. It listens once constructed; `run` answers."""

    def __init__(self, port: int | None = None, share: bool = False, tape_path: Path | None = None):
        listener = _listen("0.0.0.0" if share else HOST, port)
        number = listener.getsockname()[1]
        token = secrets.token_urlsafe(16) if share else None
        self.address = (
            f"http://{_host_name()}:{number}/?token={token}" if share else f"http://{HOST}:{number}/"
        )
        # waitress logs a warning for every queued request, and a page with many tiles queues requests.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        # Untyped: waitress's annotations lack the event loop, which `stop` needs.
        self._left: dict[int, Any] = {}
        self._ending = threading.Lock()
        self._ended = False
        # Otherwise waitress buffers a piece of a tape in a temporary file, which it does not close.
        app = create_app(tape_path, token)
        sizes: Any = {"outbuf_overflow": _MOST_WAITING, "max_request_body_size": _MOST_ASKED}
        self._server: Any = create_server(app, sockets=[listener], threads=8, **sizes)

    def run(self) -> None:
        """Answer requests until `stop` is called from another thread, or Ctrl-C is pressed."""
        self._server.run()
        threads = self._server.task_dispatcher
        threads.shutdown()
        with self._ending:
            self._ended = True
            self._left |= self._server._map  # after Ctrl-C the event loop still has all sockets
            if threads.threads:
                # A thread that still computes will wake the event loop, whose pipe must not be reused before.
                self._left.pop(self._server.trigger._fileno, None)
            wasyncore.close_all(self._left)

    def stop(self) -> None:
        """Make `run` return. May be called from any thread, repeatedly, and after the end."""

        def leave() -> None:
            # The loop ends when it has no sockets. Threads may still use them, so `run` closes them later.
            self._left.update(self._server._map)
            self._server._map.clear()

        # After this the loop may end at any time, so the pipe that wakes it stays open until then.
        with self._ending:
            if not self._ended:
                self._server.trigger.pull_trigger(leave)


def _host_name() -> str:
    """The host name of this machine for other machines."""
    return socket.gethostname() or HOST


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket at this port; without one, at the default port or, if that is taken, any free one."""
    if port is not None and not 0 <= port <= 65535:
        raise OSError(f"{port} is not a port: ports are 0 to 65535")
    try:
        return socket.create_server((host, DEFAULT_PORT if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((host, 0))
        taken = error.errno == errno.EADDRINUSE
        why = "is taken" if taken else f"cannot be used ({error.strerror})"
        raise OSError(f"port {port} {why}: choose another, or 0 for any free one") from error


def launch(
    port: int | None = None,
    share: bool = False,
    block: bool = True,
    open_browser: bool = True,
    tape: str | Path | None = None,
) -> str:
    """Open the page with this program's launches. Returns the address of the page.

    Without a port it is 8000, or any free one if that is taken. Only this machine can open it; with
    share=True others can too, with a link that holds a secret. With block=False it is served from a thread
    until the program ends. `tape` is an instruction log of GT (GT_INSTRUCTION_LOG), shown beside the kernels.
    """
    server = PageServer(port, share, None if tape is None else Path(tape))
    stops = " (Ctrl-C stops)" if block else ""
    count = f"{len(launches)} launch{'' if len(launches) == 1 else 'es'}"
    print(f"triton_viz: {count} at {server.address}{stops}", flush=True)
    if open_browser:
        webbrowser.open(server.address)
    if block:
        server.run()
    else:
        threading.Thread(target=server.run, daemon=True).start()
    return server.address
