"""Processes that are forked while a kernel runs: by another thread, and by a client's callback."""

import pytest

from tests.programs import run_python

BY_ANOTHER_THREAD = """
import os, signal, threading, torch, triton.language as tl, triton_viz
from triton.runtime.jit import JITFunction
from tests.triton_viz.helpers.kernels import scale
from triton_viz.clients import Tracer

def wait():
    began.set()
    go_on.wait()

class Waits(Tracer):
    def grid_idx_callback(self, grid_idx):
        wait()

class DefersInterrupts(Tracer):
    def register_op_callback(self, op_type):
        wait()
        return super().register_op_callback(op_type)

def launch(x, *clients):
    triton_viz.trace(clients)(scale)[(1,)](x, 2.0, BLOCK=4)
    return x.tolist() == [2.0] * 4

def patched():
    language = [tl.reduce, tl.tensor.__add__, JITFunction.__call__]
    return [*language, torch.cuda.get_device_name, signal.getsignal(signal.SIGINT)]

def fork():
    began.wait()
    child = os.fork()
    if child == 0:
        if patched() != outside:
            os._exit(2)
        os._exit(0 if launch(torch.ones(4)) and patched() == outside else 3)
    status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    within.extend(patched())
    go_on.set()

began, go_on = threading.Event(), threading.Event()
status, within, outside = [], [], patched()
if CLIENT is Waits:
    thread = threading.Thread(target=launch, args=(torch.ones(4), CLIENT()))
    thread.start()
    fork()
else:  # interrupts are the main thread's
    thread = threading.Thread(target=fork)
    thread.start()
    launch(torch.ones(4), CLIENT())
thread.join()
print(status, within != outside, patched() == outside, launch(torch.ones(4)))
"""


@pytest.mark.parametrize("client", ["Waits", "DefersInterrupts"])
def test_a_process_that_is_forked_during_a_launch_is_outside_of_it(client: str):
    assert run_python("-c", BY_ANOTHER_THREAD.replace("CLIENT", client)).stdout == "[0] True True True\n"


BY_A_CALLBACK = """
import os, sys, torch, triton_viz
from tests.triton_viz.helpers.kernels import add
from triton_viz.clients import Tracer

def launch(*clients):
    x = torch.zeros(32)
    triton_viz.trace(clients)(add)[(8,)](torch.ones(32), torch.ones(32), x, 32, BLOCK=4)
    return x.tolist() == [2.0] * 32

class Forks(Tracer):
    status = None

    def grid_idx_callback(self, grid_idx):
        if parent == os.getpid() and self.status is None:
            Forks.status = 0  # one of several threads forks
            child = os.fork()
            if child == 0:
                print("launched in the child:", launch(), launch(Tracer()), flush=True)
                END
            else:
                Forks.status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        super().grid_idx_callback(grid_idx)

parent = os.getpid()
real = torch.cuda.get_device_name
triton_viz.config.num_sms, triton_viz.config.vectorized = SMS, False
print("launched:", launch(Forks()), torch.cuda.get_device_name is real)
if parent == os.getpid():
    print("the child returned", Forks.status)
"""


def forked_in_a_callback(sms: int, end: str) -> tuple[list[str], str]:
    done = run_python("-c", BY_A_CALLBACK.replace("SMS", str(sms)).replace("END", end))
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("sms", [1, 3])
def test_a_process_that_a_callback_forks_can_launch_and_end(sms: int):
    lines, errors = forked_in_a_callback(sms, "os._exit(7)")
    assert lines == ["launched in the child: True True", "launched: True True", "the child returned 7"]
    assert errors == ""


def test_a_process_that_a_callback_forks_ends_the_launch_too_if_one_thread_runs_it():
    lines, errors = forked_in_a_callback(1, "pass")
    both = ["launched: True True"] * 2
    assert lines == ["launched in the child: True True", *both, "the child returned 0"]
    assert errors == ""


def test_a_process_that_a_callback_forks_cannot_go_on_with_a_launch_of_several_threads():
    lines, errors = forked_in_a_callback(3, "pass")
    assert lines == ["launched in the child: True True", "launched: True True", "the child returned 1"]
    assert errors.startswith(
        "triton_viz: this process was forked in a callback of a launch with several threads"
    )
    assert "set config.num_sms to 1" in errors
