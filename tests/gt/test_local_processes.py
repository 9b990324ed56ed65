"""Processes that a program starts end with it, and leave no shared memory behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gt import config
from gt.transport.shared_memory import FOLDER, alive
from tests.gt.helpers.servers import Cluster, eventually, is_alive
from tests.programs import TIMEOUT

# --- processes of the program's own ---

PARENT = """
import gt, os, sys, time
import numpy as np
gt.init(workers=2, engine="numpy")
print((gt.ones(2) + 1).tolist(), flush=True)
pids = [stats["pid"] for stats in gt.debug.get_worker_stats().values()]
folder = gt.client.session.current().connection.address
print("folder", folder.removeprefix("ipc://").removesuffix("/server"), flush=True)
data = gt.from_numpy(np.ones(1_000_000)) + 1
assert data.sum().item() == 2_000_000
print("pids", gt.debug.get_dispatcher_stats()["pid"], *pids, flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["returns", "raises", "exits at once", "killed"])
def test_local_processes_end_with_the_program(empty: Cluster, how: str):
    then = {
        "returns": "",
        "raises": "1 / 0",
        "exits at once": "os._exit(4)",
        "killed": "time.sleep(600)",
    }[how]
    program = empty.run("-c", PARENT.format(then=then))
    program.says("pids")
    pids = [int(pid) for pid in program.output.split("pids")[1].split()[:3]]
    if how == "killed":
        assert all(map(is_alive, pids))
        program.popen.send_signal(signal.SIGKILL)
    program.popen.wait(TIMEOUT)
    eventually(lambda: not any(map(is_alive, pids)), what=f"{pids} end")
    folder = Path(program.output.split("folder ")[1].split()[0])
    assert not folder.exists()
    processes = [program.popen.pid, *pids]
    assert not [path for pid in processes for path in FOLDER.glob(f"gt-{pid}-*")]


def test_gt_workers_starts_processes_and_ctrl_c_ends_them(empty: Cluster):
    code = (
        "import gt, time; print((gt.ones(2) + 1).tolist(), len(gt.debug.get_worker_stats()), "
        "[s['pid'] for s in gt.debug.get_worker_stats().values()][0], flush=True); time.sleep(600)"
    )
    program = empty.run("-c", code, GT_WORKERS="2")
    program.says("[2.0, 2.0] 2 ")
    pid = int(program.output.split()[-1])
    program.interrupt()
    eventually(lambda: not is_alive(pid))


def test_a_process_that_has_not_been_waited_for_counts_as_ended():
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(process.pid)
    process.wait(TIMEOUT)
    assert not alive(process.pid)
    assert alive(os.getpid())


@pytest.mark.parametrize("name", ["GT_TIMEOUT", "GT_COMPILE_AFTER"])
@pytest.mark.parametrize("value", ["nan", "-1", "soon"])
def test_a_setting_that_is_no_number_of_seconds_is_an_error(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} must be a number of seconds, but got '{value}'"):
        config.timeout() if name == "GT_TIMEOUT" else config.compile_after()


def test_the_number_of_threads_may_be_a_list(monkeypatch: pytest.MonkeyPatch):
    """OpenMP takes one number for each level of nested regions."""
    for value, threads in (("", None), ("3", 3), ("4,2", 4), (" 4 , 2", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert config.threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="OMP_NUM_THREADS must be a number of threads, but got 'many'"):
        config.threads()


@pytest.mark.parametrize("value", ["0", "-1", "two", "\N{SUPERSCRIPT TWO}"])
def test_gt_workers_that_is_no_number_is_an_error(empty: Cluster, value: str):
    program = empty.run("-c", "import gt; gt.ones(1)", GT_WORKERS=value)
    assert program.ends() == 1
    assert f"GT_WORKERS must be the number of worker processes to start, but got '{value}'" in program.output


def test_servers_print_nothing_unless_verbose(empty: Cluster):
    program = "import gt; gt.init(workers=1, engine='numpy'); print(gt.ones(1).item())"
    quiet = empty.run("-c", program)
    assert (quiet.ends(), quiet.output) == (0, "1.0\n")
    loud = empty.run("-c", program, GT_VERBOSE="1")
    assert loud.ends() == 0
    assert "server ready on ipc://" in loud.output


def test_shared_memory_is_removed_when_all_processes_have_ended(empty: Cluster):
    code = (
        "import gt, numpy as np, os; gt.init(workers=1, engine='numpy');"
        "x = gt.from_numpy(np.ones(1_000_000)); y = x.numpy();"
        "print(os.getpid(), gt.debug.get_worker_stats()['worker_0']['pid'])"
    )
    program = empty.run("-c", code)
    assert program.ends() == 0
    for pid in program.output.split():
        assert not list(FOLDER.glob(f"gt-{pid}-*"))


def test_shared_memory_of_a_killed_client_is_given_back(running: Cluster):
    from gt.transport.shared_memory import FOLDER

    code = (
        f"import gt, numpy as np, time; gt.connect('{running.address}');"
        "x = gt.from_numpy(np.ones(1_000_000)); y = x.numpy(); print('there', flush=True); time.sleep(600)"
    )
    program = running.run("-c", code)
    program.says("there")
    assert list(FOLDER.glob(f"gt-{program.pid}-*"))
    program.kill()
    eventually(lambda: not list(FOLDER.glob(f"gt-{program.pid}-*")))
