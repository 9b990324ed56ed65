"""A one-minute tour of Tapestry: `make demo`, or `python demo.py`. It ends by itself.

Two packages, one after the other: `gt` trains a model through an instruction stream, `triton_viz` runs a
Triton kernel on the CPU and shows which elements each program touched.
"""

import os
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

console = Console(highlight=False)
folder = Path(tempfile.mkdtemp(prefix="tapestry-"))


def train_with_gt() -> str:
    """Fit a plane with gradient descent, and count what that put on the tape."""
    log = folder / "instructions.log"
    os.environ["GT_INSTRUCTION_LOG"] = str(log)
    import gt

    console.rule("[bold]gt[/]: tensors over an instruction stream", align="left")
    gt.manual_seed(0)
    x = gt.randn(64, 2)
    y = x @ gt.tensor([[2.0], [-3.0]]) + 0.5
    model = gt.nn.Linear(2, 1)
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1)

    loss = gt.tensor(0.0)
    for step in range(61):
        loss = gt.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            console.print(f"  step {step:2}   loss {loss.item():8.5f}")
    assert model.bias is not None
    (a, b), c = model.weight.tolist()[0], model.bias.item()
    console.print(f"  learned y = {a:.2f} a + {b:.2f} b + {c:.2f}\n")

    del os.environ["GT_INSTRUCTION_LOG"]
    tape = [[field.strip() for field in line.split("|")] for line in log.read_text().splitlines()]
    console.print("  The last matrix product, on its way to the worker and back:")
    product = [fields[-1] for fields in tape if fields[2] == "RECV" and "op=matmul" in fields[-1]][-1]
    number = product.split()[0].removeprefix("result=")
    table = Table(box=None, show_header=False, padding=(0, 1), style="dim")
    for _, _, event, _, command, _, details in tape:
        if "BinaryOp" in command and details.startswith((f"result={number} ", f"result=c1_{number} ")):
            table.add_row("", event, details)
    console.print(table)
    return f"gt trained a model to a loss of {loss.item():.0e}: {len(tape):,} lines on the tape, in {log}"


def trace_a_kernel() -> str:
    """Run a Triton kernel on the CPU, and draw what each program touched."""
    import triton_viz
    from examples import vector_add
    from triton_viz.core.data import Store

    console.print()
    console.rule("[bold]triton_viz[/]: a Triton kernel on the CPU", align="left")
    n, block = 100, 32
    vector_add.run(n, block)
    launch = triton_viz.launches[-1]
    table = Table("program", "stored to out", "elements", "masked off", box=None, padding=(0, 2))
    for program in launch.programs():
        for op in launch.at(program):
            if isinstance(op, Store):
                touched = set(op.offsets[op.mask].tolist())
                cells = "".join("█" if i in touched else "·" for i in range(0, n, 4))
                table.add_row(str(program[0]), cells, str(len(touched)), str(int((~op.mask).sum())))
    console.print(table)
    trace = folder / "vector_add.tvz"
    triton_viz.save(trace)
    return f"triton_viz traced {launch.ops} ops of {launch.grid[0]} programs, saved in {trace}"


def main() -> None:
    """Both parts, and a summary."""
    start = time.perf_counter()
    done = [train_with_gt(), trace_a_kernel()]
    console.print()
    console.rule(f"[bold]Done[/] in {time.perf_counter() - start:.1f} s", align="left")
    for line in done:
        console.print(f"  {line}", soft_wrap=True)
    console.print("\n  What to look at next")
    for command, what in (
        ("make viz", "the trace as a web page"),
        ("make bench", "how fast, beside PyTorch, NumPy and Triton's interpreter"),
        ("make help", "everything else"),
    ):
        console.print(f"    {command:<12} {what}")


if __name__ == "__main__":
    main()
