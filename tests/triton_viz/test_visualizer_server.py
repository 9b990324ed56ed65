"""The page's server: addresses, ending, and the arguments of its command."""

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request

import pytest
import torch

import triton_viz
from examples import vector_add
from tests.programs import TIMEOUT
from tests.triton_viz.helpers import kernels
from triton_viz.clients import Tracer
from triton_viz.visualizer import interface, visualizer_command
from triton_viz.visualizer.interface import create_app

pytestmark = pytest.mark.usefixtures("no_launches")


def test_launch_serves_on_loopback_from_a_thread(capsys: pytest.CaptureFixture[str]):
    vector_add.run()
    address = triton_viz.launch(port=0, block=False, open_browser=False)
    assert address.startswith("http://127.0.0.1:")
    assert address in capsys.readouterr().out
    with urllib.request.urlopen(address + "api/launches", timeout=TIMEOUT) as answer:
        assert len(json.load(answer)["launches"]) == 1
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        assert b"<html" in answer.read().lower()
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(address + "absent.js", timeout=TIMEOUT)


def test_without_a_port_a_free_one_is_taken(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr("triton_viz.visualizer.interface.DEFAULT_PORT", usual)
        address = triton_viz.launch(block=False, open_browser=False)
    assert address != f"http://127.0.0.1:{usual}/"
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        assert answer.status == 200


def test_a_taken_port_is_refused_politely():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} is taken: choose another, or 0"):
            triton_viz.launch(port=port, block=False, open_browser=False)


def test_a_shared_page_is_only_for_those_who_have_the_link():
    vector_add.run()
    with create_app(token="secret").test_client() as api:
        refused = api.get("/api/launches")
        assert (refused.status_code, "open the whole link" in refused.get_json()["error"]) == (403, True)
        assert api.get("/api/launches?token=wrong").status_code == 403
        with contextlib.closing(api.get("/?token=secret")) as page:
            assert page.status_code == 200
        assert api.get("/api/launches", headers={"Host": "elsewhere:8000"}).status_code == 403
        assert api.get("/api/launches").status_code == 200  # the page has a cookie now


def test_only_a_shared_page_listens_beyond_this_machine():
    for share, host in ((False, "127.0.0.1"), (True, "0.0.0.0")):
        server = interface.PageServer(0, share)
        assert server._server.effective_host == host
        assert ("token=" in server.address) == share
        server.stop()
        server.run()


def test_a_request_with_a_body_is_refused_before_it_is_read():
    address = triton_viz.launch(port=0, block=False, open_browser=False)
    asked = urllib.request.Request(address + "api/launches", b"x", {"Content-Length": str(1 << 20)})
    with pytest.raises(urllib.error.HTTPError, match="413"):
        urllib.request.urlopen(asked, timeout=TIMEOUT)


def test_a_server_can_be_stopped_again_and_after_its_end():
    server = interface.PageServer(0)
    server.stop()
    server.stop()
    server.run()
    server.stop()


def test_a_server_that_ends_during_stop_ends_in_order():
    server = interface.PageServer(0)
    thread = threading.Thread(target=server.run)
    thread.start()
    trigger = server._server.trigger
    wake = trigger._physical_pull

    def late() -> None:
        wake()  # as a request that was just answered does
        thread.join(0.3)
        wake()

    trigger._physical_pull = late
    server.stop()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


@pytest.mark.parametrize("url", ["tensor?tensor=x&layer=coverage", "tensor?tensor=x", "programs?"])
def test_rows_longer_than_all_there_is_cost_nothing(url: str):
    vector_add.run()
    api = create_app().test_client()
    answers = [api.get(f"/api/{url}&columns={columns}&across=4&down=2") for columns in (10**4, 10**15)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].data == answers[1].data


def test_requests_that_exhaust_memory_are_refused_with_their_size():
    """A tensor of two gigabytes of which a kernel reads a few bytes."""
    large = torch.empty(1 << 31, dtype=torch.int8)
    triton_viz.trace(Tracer(values=True))(kernels.add)[(1,)](large, large, large, 4, BLOCK=4)
    api = create_app().test_client()
    window = "tensor?tensor=x&columns=8&across=2&down=2"
    for url in (f"{window}&layer=coverage", f"{window}&layer=values", "histogram?tensor=x"):
        answer = api.get(f"/api/{url}")
        assert answer.status_code == 400
        assert answer.get_json()["error"].startswith("The elements of x are 2,147,483,648: at most")
    assert api.get(f"/api/{window}").status_code == 200
    launch = triton_viz.launches[-1]
    launch.grid = (1 << 20, 1 << 20, 1)
    answer = api.get("/api/programs?columns=8&across=2&down=2")
    assert "The programs of add are 1,099,511,627,776" in answer.get_json()["error"]


@pytest.mark.parametrize(
    "arguments", [[], ["absent.tvz", "--no-browser"], ["--tape", "absent.log", "--no-browser"]]
)
def test_the_command_says_what_it_needs(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    try:
        status = visualizer_command.main(arguments)
    except SystemExit as exit:
        status = exit.code
    assert status == (1 if arguments else 2)
    said = capsys.readouterr().err
    assert ("absent" in said) if arguments else ("give a trace file, or --tape LOG" in said)
