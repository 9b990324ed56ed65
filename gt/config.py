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
    if not value.isdigit() or int(value) == 0:
        raise ValueError(f"GT_WORKERS must be the number of worker processes to start, but got {value!r}")
    return int(value)


def timeout() -> float:
    """How long to wait for an answer, in seconds."""
    value = os.environ.get("GT_TIMEOUT") or "600"
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"GT_TIMEOUT must be a number of seconds, but got {value!r}") from None


def auto_compile() -> bool:
    """Whether repeated sequences are compiled."""
    return os.environ.get("GT_AUTO_COMPILE", "1") not in ("", "0")


def compile_after() -> float:
    """How many seconds a repeated sequence must have run before it is compiled."""
    value = os.environ.get("GT_COMPILE_AFTER") or "0.5"
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"GT_COMPILE_AFTER must be a number of seconds, but got {value!r}") from None


def instruction_log() -> str | None:
    """The file that every instruction is written to, or None."""
    return os.environ.get("GT_INSTRUCTION_LOG") or None
