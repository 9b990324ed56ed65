"""Writes docs/pytorch-ops.md: which of PyTorch's ops give on the device what they give on the CPU.

    python -m tools.torch_ops                       # all samples of all ops; takes a while
    python -m tools.torch_ops --keep results.jsonl    # the same, and continues where it was interrupted
    python -m tools.torch_ops add mul               # some ops; writes nothing

Samples run in processes of their own: kernels are tried with what no program gives them. A test runs the
first samples of every op, and compares the list of ops with the page.
"""

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "docs/pytorch-ops.md"
LIMIT = 1200.0
"""Seconds that one op's samples may take."""


def check(op: Any, most: int | None) -> dict[str, Any]:
    """What the samples of an op gave: how many agree, in which dtypes, and what was said of the others."""
    from tools.torch_samples import Differs, Refused, compare, dtypes_of, name_of, samples

    found: dict[str, Any] = {"op": name_of(op), "dtypes": [], "right": 0, "random": 0}
    refused: dict[str, int] = {}
    wrong: dict[str, int] = {}
    for dtype in dtypes_of(op) if most is None else dtypes_of(op)[:1]:
        found["dtypes"].append(str(dtype).removeprefix("torch."))
        for n, sample in enumerate(samples(op, dtype)):
            if most is not None and n >= most:
                break
            try:
                compared = compare(op, sample)
                found["right"] += 1
                found["random"] += not compared
            except Refused as error:
                clear = "the device tapestry" in str(error)
                kind = refused if clear else wrong
                kind[f"{dtype}: {error}"] = kind.get(f"{dtype}: {error}", 0) + 1
            except Exception as error:  # noqa: BLE001 - `Differs`, or the comparison itself failed
                error = error if isinstance(error, Differs) else repr(error)
                wrong[f"{dtype}: {error}"] = wrong.get(f"{dtype}: {error}", 0) + 1
    return {**found, "refused": refused, "wrong": wrong}


def serve(most: int | None) -> None:
    """Check the ops whose numbers come in, line by line, and print what they gave."""
    from torch.testing._internal import common_methods_invocations as listing

    warnings.simplefilter("ignore")
    # Random ops are listed with a seed of their own, which would hide that their results depend on it.
    listing.__dict__["wrapper_set_seed"] = lambda op, *args, **kwargs: op(*args, **kwargs)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what ops print is no answer
    for line in sys.stdin:
        print(json.dumps(check(listing.op_db[int(line)], most)), file=answers, flush=True)


class Process:
    """A process that checks ops, started again when one ends it."""

    def __init__(self, most: int | None) -> None:
        self.command = [sys.executable, "-m", "tools.torch_ops", "--serve"]
        self.command += ["--most", str(most)] if most is not None else []
        self.process: subprocess.Popen[str] | None = None

    def check(self, number: int, name: str) -> dict[str, Any]:
        """What one op gave."""
        if self.process is None:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            # Compiling what repeats would take longer than all samples do, and threads are of no use to them.
            environment = {"GT_AUTO_COMPILE": "0", "OMP_NUM_THREADS": "1", **os.environ}
            self.process = subprocess.Popen(self.command, text=True, env=environment, **pipes)
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        print(number, file=process.stdin, flush=True)
        answer = process.stdout.readline()
        timer.cancel()
        if answer:
            return json.loads(answer)
        self.process = None
        said = f"the process ended with {process.wait()}"
        return {"op": name, "dtypes": [], "right": 0, "random": 0, "refused": {}, "wrong": {said: 1}}

    def close(self) -> None:
        """End the process."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def check_all(
    numbers: list[int], processes: int, most: int | None, report: Callable[[dict[str, Any]], None]
) -> None:
    """Check the ops with these numbers in `op_db`, and report what each gave."""
    from torch.testing._internal.common_methods_invocations import op_db

    from tools.torch_samples import name_of

    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in numbers:
        waiting.put(number)
    reporting = threading.Lock()

    def work() -> None:
        process = Process(most)
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                process.close()
                return
            result = process.check(number, name_of(op_db[number]))
            with reporting:
                report(result)

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


HEAD = """# PyTorch's ops on the device

PyTorch lists its ops with samples of their arguments (`op_db`). This page is written by
`python -m tools.torch_ops`, which runs every sample on `torch.device("tapestry")`, embedded, and on the CPU,
in up to six dtypes (float32, int64, bool, complex64, bfloat16, float64), and compares the results, the
gradients of a weighted sum of them, the arguments that the op changes, and the forms in place and with
`out=`. What the CPU refuses, the device must refuse. [pytorch.md](pytorch.md) says how ops travel.

- **right**: all samples agree. Of samples whose results depend on the seed, shapes and dtypes are compared:
  *random* says how many. The same holds for ops whose results are uninitialized memory.
- **refused**: the device raises an error that names the op, the user's line, and what to do.
- **not on the CPU**: PyTorch has this op for other devices only.
- **not run**: there is no result of all samples yet; the first ones are run by a test.
"""


def status(result: dict[str, Any]) -> str:
    """An op's status in the table."""
    if result["wrong"]:
        return "wrong"
    if result["refused"]:
        return "refused"
    if not result["dtypes"] and "not run" in result:
        return "not run"
    return "right" if result["right"] else "not on the CPU"


def table(results: list[dict[str, Any]]) -> str:
    """The text of the page."""
    counts: dict[str, int] = {}
    for one in results:
        counts[status(one)] = counts.get(status(one), 0) + 1
    total = len(results)
    shares = ", ".join(f"{n} {name}" for name, n in counts.items())
    samples = sum(one["right"] for one in results)
    share = 100 * counts.get("right", 0) / total
    head = f"Of {total} ops: {shares}. {share:.1f} % of the ops are right; {samples} samples agree."
    lines = [HEAD, head, "", "| op | | samples | random | dtypes | why |", "| --- " * 6 + "|"]
    for one in results:
        others = {**one["refused"], **one["wrong"]}
        why = "; ".join(sorted({_short(said) for said in others}))
        number = f"{one['right']}" + (f" of {one['right'] + sum(others.values())}" if others else "")
        cells = [
            f"`{one['op']}`",
            status(one),
            number,
            str(one["random"] or ""),
            " ".join(one["dtypes"]),
            why,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _no_result(name: str) -> dict[str, Any]:
    none: dict[str, int] = {}
    return {
        "op": name,
        "dtypes": [],
        "right": 0,
        "random": 0,
        "refused": none,
        "wrong": none,
        "not run": True,
    }


def _short(said: str) -> str:
    """The reason in what was said, without the dtype and the line of the program."""
    text = re.sub(r"^torch\.\w+: ", "", said)
    text = re.sub(r" \(at [^)]*\)", "", text).split(". ")[0]
    return text.replace("|", "/").replace("\n", " ")[:160]


def listed() -> list[str]:
    """The ops that the committed page lists."""
    return re.findall(r"^\| `([^`]+)` \|", FILE.read_text(), re.MULTILINE)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Compare PyTorch's ops on the device with the CPU.")
    parser.add_argument("ops", nargs="*", help="some ops only; then nothing is written")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--most", type=int, help="samples of each op, in its first dtype; nothing is written")
    parser.add_argument(
        "--part", default="0/1", help="every nth op from the kth on, as k/n; nothing is written"
    )
    parser.add_argument("--keep", type=Path, help="a file for results; those it has are not computed again")
    parser.add_argument("--write", action="store_true", help="write the page from the results kept so far")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.most)
        return
    from torch.testing._internal.common_methods_invocations import op_db

    from tools.torch_samples import name_of

    first, step = map(int, options.part.split("/"))
    numbers = [n for n, op in enumerate(op_db) if not options.ops or name_of(op) in options.ops][first::step]
    known: dict[str, dict[str, Any]] = {}
    if options.keep is not None and options.keep.exists():
        known = {one["op"]: one for one in map(json.loads, options.keep.read_text().splitlines())}

    def report(result: dict[str, Any]) -> None:
        known[result["op"]] = result
        if options.keep is not None:
            with options.keep.open("a") as file:
                print(json.dumps(result), file=file)
        for kind in ("refused", "wrong"):
            for said, count in result[kind].items():
                print(f"{kind}: {result['op']} ({count} samples): {' '.join(said.split())[:400]}", flush=True)

    missing = [n for n in numbers if name_of(op_db[n]) not in known]
    if not options.write:
        check_all(missing, options.processes, options.most, report)
    results = [known.get(name_of(op_db[n]), _no_result(name_of(op_db[n]))) for n in numbers]
    counts = [(name, sum(status(one) == name for one in results)) for name in ("right", "refused", "wrong")]
    print(", ".join(f"{n} {name}" for name, n in counts))
    if not options.ops and options.most is None and options.part == "0/1":
        FILE.write_text(table(results))
    if counts[-1][1]:
        sys.exit(1)


if __name__ == "__main__":
    main()
