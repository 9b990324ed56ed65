"""The instruction log holds every instruction of a program, also of one that never reads."""

import re
from pathlib import Path

import pytest

from tests.gt.helpers.servers import Cluster, Process, eventually
from tests.programs import run_python

NEVER_READS = """
import os, gt
{start}
a, b = gt.tensor([[1.0, 2.0]] * 64), gt.tensor([[3.0] * 64] * 2)
for _ in range(50):
    c = a @ b
"""


def commands(log: Path) -> list[tuple[str, str]]:
    """Event and command of each line."""
    fields = [re.split(r" *\| *", line) for line in log.read_text().splitlines()]
    return [(field[2], field[4]) for field in fields]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_never_reads_is_in_the_log_of_its_own_server(tmp_path: Path, workers: int):
    log = tmp_path / "gt.log"
    start = f"gt.init(workers={workers}, engine='numpy', shard_threshold=16)"
    run_python("-c", NEVER_READS.format(start=start), environment={"GT_INSTRUCTION_LOG": str(log)})
    found = commands(log)
    assert found.count(("RECV", "CreateTensor")) == 2
    assert found.count(("WORKER_SEND", "WorkerCreateTensor")) == 2 * workers
    assert found.count(("WORKER_RECV", "WorkerCreateTensor")) == 2 * workers
    assert log.read_text().count("op=matmul") == 50 * (1 + workers)
    assert found[-1] == ("DISCONNECT", "")


@pytest.fixture
def logged(tmp_path: Path):
    running = Cluster()
    try:
        running.start_server(GT_INSTRUCTION_LOG=str(tmp_path / "gt.log"))
        running.start_worker()
        yield running
    finally:
        running.stop()


def test_a_program_that_never_reads_is_in_the_log_of_a_server_it_connected_to(
    logged: Cluster, tmp_path: Path
):
    run_python("-c", NEVER_READS.format(start=f"gt.connect('{logged.address}')"))
    found = commands(tmp_path / "gt.log")
    assert found.count(("RECV", "CreateTensor")) == 2
    assert found.count(("WORKER_RECV", "WorkerCreateTensor")) == 2
    assert (tmp_path / "gt.log").read_text().count("op=matmul") == 2 * 50
    assert ("DISCONNECT", "") in found


def test_what_a_client_had_sent_is_read_before_the_client_is_dropped(logged: Cluster, tmp_path: Path):
    """The server finds its messages and the end of its connection at once."""
    assert logged.server is not None
    code = f"""
import os, signal, gt
client = gt.connect('{logged.address}')
os.kill({logged.server.pid}, signal.SIGSTOP)
tensors = []
for number in range(200):
    tensors.append(gt.tensor([float(number)]))
    client.flush()
client.connection._link.close()  # without a Bye message
os.kill({logged.server.pid}, signal.SIGCONT)
os._exit(0)
"""
    run_python("-c", code)
    log = tmp_path / "gt.log"
    eventually(lambda: "DISCONNECT   | CLIENT" in log.read_text(), what="the end of the client in the log")
    assert commands(log).count(("RECV", "CreateTensor")) == 200


ENTRY = re.compile(
    r" *\d+\.\d{3}s \| #\d{4,} \| [A-Z_]+ *\| (CLIENT|WORKER|SERVER) \w+ *\| \w* *\| +\S+B \| .*"
)


def test_a_second_run_appends_to_the_log_with_a_note(tmp_path: Path):
    log = tmp_path / "gt.log"
    code = "import gt; gt.init(engine='numpy'); (gt.ones(2) {op} 1).tolist()"
    run_python("-c", code.format(op="+"), environment={"GT_INSTRUCTION_LOG": str(log)})
    first = log.read_text()
    assert "APPEND" not in first
    run_python("-c", code.format(op="-"), environment={"GT_INSTRUCTION_LOG": str(log)})
    assert log.read_text().startswith(first)
    second = log.read_text()[len(first) :].splitlines()
    assert re.search(r"#0000 \| APPEND +\| SERVER \d+ .*lines above are from other servers", second[0])
    assert all(ENTRY.fullmatch(line) for line in second)
    assert not any("op=add" in line for line in second)


def test_a_program_that_turns_its_log_off_and_on_appends_once(tmp_path: Path):
    log = tmp_path / "gt.log"
    log.write_text("notes\n")
    code = """
import os, gt
gt.init(engine="numpy")
for path in (os.environ["GT_INSTRUCTION_LOG"], "") * 3:
    os.environ["GT_INSTRUCTION_LOG"] = path
    (gt.ones(2) + 1).tolist()
"""
    run_python("-c", code, environment={"GT_INSTRUCTION_LOG": str(log)})
    assert log.read_text().startswith("notes\n")
    assert log.read_text().count("APPEND") == 1


def test_servers_that_share_a_log_leave_each_others_lines_whole(tmp_path: Path):
    log = tmp_path / "gt.log"
    code = """
import gt
gt.init(engine="numpy")
for _ in range(40):
    x = gt.ones(2)
    for _ in range(200):
        x = x + {number}
    x.tolist()
"""
    programs = [Process("-c", code.format(number=1000 + n), GT_INSTRUCTION_LOG=str(log)) for n in range(2)]
    try:
        assert [program.ends() for program in programs] == [0, 0], [one.output for one in programs]
    finally:
        for program in programs:
            program.stop()
    lines = log.read_text().splitlines()
    assert all(ENTRY.fullmatch(line) for line in lines)
    for number in (1000, 1001):
        sums = [line for line in lines if f"scalar={number} " in line and "| RECV " in line]
        assert len(sums) == 40 * 200
