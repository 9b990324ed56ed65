"""The registry of clients: a client is a package that registers itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tests.triton_viz.helpers.toy_client  # noqa: F401 - the one line that makes the toy client known
import triton_viz
from examples import nki_rms_norm
from tests.programs import ROOT, TIMEOUT, run_python
from tests.triton_viz.helpers import kernels
from triton_viz.clients import Profiler, RaceDetector, Sanitizer, Tracer
from triton_viz.core.client_registry import registered_clients
from triton_viz.core.data import Op
from triton_viz.core.trace import _normalize_client
from triton_viz.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")


def add(client: object) -> torch.Tensor:
    x, out = torch.arange(8.0), torch.zeros(8)
    triton_viz.trace(client)(kernels.add)[(2,)](x, x, out, 7, BLOCK=4)  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize(
    ("name", "kind"),
    [("tracer", Tracer), ("profiler", Profiler), ("sanitizer", Sanitizer), ("race_detector", RaceDetector)],
)
def test_a_client_that_comes_with_triton_viz_is_found_by_its_name(name: str, kind: type):
    client = _normalize_client(name)
    assert isinstance(client, kind)
    assert name == client.NAME


def test_a_registered_client_works_by_name_and_its_records_are_in_the_launch():
    assert add("toy")[:7].tolist() == [0, 2, 4, 6, 8, 10, 12]
    (launch,) = triton_viz.launches
    assert [type(record).__name__ for record in launch.records] == ["StoreCount", "StoreCount"]
    assert [record.elements for record in launch.records] == [4, 3]  # type: ignore[attr-defined]
    assert [record.program for record in launch.records] == [(0, 0, 0), (1, 0, 0)]
    assert launch.records[0].call_path[0].function == "add"
    assert not any(isinstance(record, Op) for record in launch.records), "the page does not draw them as ops"
    add(["toy", "tracer"])
    assert [type(record).__name__ for record in triton_viz.launches[-1].records] == [
        *["StoreCount"] * 2,
        *["Load", "Load", "Store"],
    ]


LOAD = """
import sys, triton_viz
{first}
triton_viz.load({path!r})
print([type(record).__name__ for launch in triton_viz.launches for record in launch.records])
"""


def test_records_of_a_registered_client_survive_a_trace_file(tmp_path: Path):
    path = str(tmp_path / "toy.tvz")
    add("toy")
    records = triton_viz.launches[0].records
    triton_viz.save(path)
    triton_viz.load(path)
    assert triton_viz.launches[0].records == records
    code = LOAD.format(first="import tests.triton_viz.helpers.toy_client", path=path)
    assert run_python("-c", code).stdout == "['StoreCount', 'StoreCount']\n"
    said = run_python("-c", LOAD.format(first="", path=path), fails=True).stderr
    assert "records of type 'StoreCount', which no imported module defines: import the module" in said


def test_a_trace_file_imports_the_modules_of_its_records(tmp_path: Path):
    """In a program that has imported neither the clients nor NKI."""
    path = str(tmp_path / "all.tvz")
    add(["sanitizer", "profiler", "tracer"])
    nki_rms_norm.rms_norm[2](np.ones((256, 64), np.float32))
    expected = [type(record).__name__ for launch in triton_viz.launches for record in launch.records]
    assert {"Verdict", "SiteProfile", "KernelProfile", "NeuronProfile", "Load"} <= set(expected)
    triton_viz.save(path)
    first = "assert not {'triton_viz.clients', 'triton_viz.dsls.nki'} & set(sys.modules)"
    assert run_python("-c", LOAD.format(first=first, path=path)).stdout == f"{expected}\n"


SCRIPT = """
import torch
from tests.triton_viz.helpers import kernels
x, out = torch.ones(8), torch.zeros(8)
kernels.add[(2,)](x, x, out, 7, BLOCK=4)
"""


def test_a_registered_client_has_its_command(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = ["-m", "triton_viz", "--import", "tests.triton_viz.helpers.toy_client", "toy", str(script)]
    done = run_python(*command, environment={"PYTHONPATH": str(ROOT)})
    assert done.stdout == "toy: 7 elements stored\n"
    done = run_python("-m", "triton_viz", "race-detector", str(script), environment={"PYTHONPATH": str(ROOT)})
    assert "triton-race-detector: 1 launch, 0 violations" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a client; choose one of profiler, race_detector, sanitizer"),
        (["nothing"], "no client with a command is called 'nothing'"),
        (["--import", "no_such_module", "toy"], "--import no_such_module: No module named"),
    ],
)
def test_an_unknown_command_lists_the_commands(arguments: list[str], said: str):
    done = subprocess.run(
        [sys.executable, "-m", "triton_viz", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert said in done.stderr


IN_THE_TREE = """
import torch, triton_viz
from tests.triton_viz.helpers import kernels
x, out = torch.ones(8), torch.zeros(8)
triton_viz.trace(client="toy")(kernels.add)[(2,)](x, x, out, 7, BLOCK=4)
triton_viz.trace(triton_viz.clients.Toy)(kernels.add)[(2,)](x, x, out, 7, BLOCK=4)
print([record.elements for launch in triton_viz.launches for record in launch.records])
print(triton_viz.clients.Toy.__module__)
"""


def test_a_client_is_added_to_triton_viz_by_its_folder(tmp_path: Path):
    """No list names it: only type checkers need one more line, in `clients/__init__.py`."""
    without = shutil.ignore_patterns("__pycache__", "static")
    shutil.copytree(ROOT / "triton_viz", tmp_path / "triton_viz", ignore=without)
    folder = tmp_path / "triton_viz/clients/toy"
    shutil.copytree(ROOT / "tests/triton_viz/helpers/toy_client", folder, ignore=without)
    for file in folder.glob("*.py"):
        file.write_text(
            file.read_text().replace("tests.triton_viz.helpers.toy_client", "triton_viz.clients.toy")
        )
    start = folder / "__init__.py"
    start.write_text(
        start.read_text()
        .replace("import triton_viz\n", "from triton_viz.core.client_registry import register_client\n")
        .replace("triton_viz.register_client", "register_client")
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = run_python("-c", IN_THE_TREE, cwd=tmp_path, environment=paths)
    assert done.stdout == "[4, 3, 4, 3]\ntriton_viz.clients.toy.client\n"
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run_python("-m", "triton_viz", "toy", "script.py", cwd=tmp_path, environment=paths)
    assert done.stdout == "toy: 7 elements stored\n"


def test_two_clients_of_one_name_are_an_error_and_one_twice_is_none():
    entry = registered_clients()["toy"]
    triton_viz.register_client("toy", entry.client, command=entry.command)
    with pytest.raises(UnsupportedError, match="a client is already called 'tracer'"):
        triton_viz.register_client("tracer", "tests.triton_viz.helpers.toy_client.client:Toy")
    assert isinstance(_normalize_client("tracer"), Tracer)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UnsupportedError, match=r"'tracker' is not a client: give .*'tracer'.*'toy'"):
        add("tracker")
    with pytest.raises(UnsupportedError, match="is not a client"):
        add([["tracer"]])


LOADED = """
import sys
import triton_viz
heavy = ("flask", "waitress", "werkzeug", "rich", "z3", "triton_viz.dsls.nki", "triton_viz.clients")
print([name for name in heavy if name in sys.modules])
for name in triton_viz.__all__:
    getattr(triton_viz, name)
print("flask" in sys.modules, triton_viz.launch.__module__)
"""


def test_importing_triton_viz_loads_no_client_no_page_and_no_nki():
    assert run_python("-c", LOADED).stdout == "[]\nTrue triton_viz.visualizer.interface\n"


USED = """
import sys, torch, triton_viz
from tests.triton_viz.helpers import kernels
x = torch.ones(4)
triton_viz.trace({client!r})(kernels.add)[(1,)](x, x, x, 4, BLOCK=4)
print([name for name in ("flask", "rich", "z3", "triton_viz.dsls.nki") if name in sys.modules])
"""


@pytest.mark.parametrize(("client", "loaded"), [("tracer", []), ("profiler", []), ("race_detector", [])])
def test_a_launch_loads_only_what_its_client_uses(client: str, loaded: list[str]):
    assert run_python("-c", USED.format(client=client)).stdout == f"{loaded}\n"
