"""Settings, all of them environment variables, all of them read when they are used.

    GT_VERBOSE=1              status messages (startup, connections)
    GT_DEBUG_CLIENT=1         the client: connections, tensor operations
    GT_DEBUG_DISPATCHER=1     the dispatcher: workers and clients that connect and leave, chunks that are sent
    GT_DEBUG_WORKER=1         the workers: registration, the instructions that they execute
    GT_DEBUG_COMPILE=1        hot paths that are detected, and the progress of their compilation
    GT_INSTRUCTION_LOG=FILE   write every instruction to FILE, one line each
    GT_CONFIG=FILE            signals, which name layouts: see gt.signal
    GT_WORKERS=N              start N worker processes, instead of one inside the program
    GT_AUTO_COMPILE=0         do not compile repeated sequences
    GT_COMPILE_AFTER=SECONDS  how long a repeated sequence has run before it is compiled (0.5);
                              inf: none is, not even one that is to be compiled at once
    GT_CACHE_DIR=FOLDER       the cache of compiled code (~/.cache/gt)
    GT_TIMEOUT=SECONDS        how long to wait for a server that is connected but does not answer (600)

Nothing is read at import, so `os.environ[...] = ...` works after `import gt`. Without any of them GT
prints nothing but errors. Output uses Python's logging: see logs.py.
"""

import os


def flag(name: str) -> bool:
    """Whether an environment variable is set to something other than 0."""
    return os.environ.get(name, "0") not in ("", "0")


def workers() -> int | None:
    """How many worker processes to start; None to run inside the program."""
    value = os.environ.get("GT_WORKERS")
    if not value:
        return None
    if not value.isdecimal() or int(value) == 0:
        raise ValueError(f"GT_WORKERS must be the number of worker processes to start, but got {value!r}")
    return int(value)


def timeout() -> float:
    """How long to wait for an answer, in seconds."""
    return _seconds("GT_TIMEOUT", 600)


def _seconds(name: str, default: float) -> float:
    value = os.environ.get(name)
    try:
        seconds = float(value) if value else default
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:  # also NaN, which no time ever exceeds
        raise ValueError(f"{name} must be a number of seconds, but got {value!r}")
    return seconds


def threads() -> int | None:
    """How many threads each worker uses, if OMP_NUM_THREADS says so: a number, or a list with one for each
    level of nested regions."""
    value = os.environ.get("OMP_NUM_THREADS")
    if not value:
        return None
    first = value.partition(",")[0].strip()
    if not first.isdecimal() or int(first) == 0:
        raise ValueError(f"OMP_NUM_THREADS must be a number of threads, but got {value!r}")
    return int(first)


def auto_compile() -> bool:
    """Whether repeated sequences are compiled."""
    return os.environ.get("GT_AUTO_COMPILE", "1") not in ("", "0")


def compile_after() -> float:
    """How many seconds a repeated sequence must have run before it is compiled."""
    return _seconds("GT_COMPILE_AFTER", 0.5)


def instruction_log() -> str | None:
    """The file that every instruction is written to, or None."""
    return os.environ.get("GT_INSTRUCTION_LOG") or None
