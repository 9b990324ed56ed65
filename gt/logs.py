"""Log output, through Python's `logging`: errors always, the rest on request.

    logger         variable              output
    -------------  --------------------  -------------------------------------------------------------
    gt             GT_VERBOSE=1          startup and connections
    gt.client      GT_DEBUG_CLIENT=1     connections, and the instructions that the program issues
    gt.dispatcher  GT_DEBUG_DISPATCHER=1 workers and clients that connect and leave, chunks that are sent
    gt.worker      GT_DEBUG_WORKER=1     registration, and the instructions that are executed
    gt.compile     GT_DEBUG_COMPILE=1    hot paths that are detected, and their compilation

The variables are read when they are used, and their output goes to stderr. A program may also set the levels
of these loggers, and give them handlers of its own, as with any library.
"""

import logging
import sys
from collections.abc import Iterable

from gt import config

_VARIABLES = {
    "gt": "GT_VERBOSE",
    "gt.client": "GT_DEBUG_CLIENT",
    "gt.dispatcher": "GT_DEBUG_DISPATCHER",
    "gt.worker": "GT_DEBUG_WORKER",
    "gt.compile": "GT_DEBUG_COMPILE",
}
_loggers = {name: logging.getLogger(name) for name in _VARIABLES}
_before: dict[str, int] = {}
"""The levels of loggers before a variable changed them."""


class _ToStderr(logging.Handler):
    """Writes errors, and the records that the variables enable."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record."""
        return record.levelno >= logging.WARNING or config.flag(_VARIABLES.get(record.name, ""))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if sys.stderr is not None:
            try:
                sys.stderr.write(f"[{record.name.replace('.', ' ')}] {self.format(record)}\n")
            except (OSError, ValueError):  # it is closed
                self.handleError(record)


logging.getLogger("gt").addHandler(_ToStderr())


def _wanted(name: str, level: int) -> logging.Logger | None:
    """A logger, if it is enabled for this level."""
    logger = _loggers[name]
    if config.flag(_VARIABLES[name]):
        if name not in _before:
            _before[name] = logger.level
            logger.setLevel(level)
    elif name in _before:
        logger.setLevel(_before.pop(name))
    return logger if logger.isEnabledFor(level) else None


def wants(layer: str) -> bool:
    """Whether a layer is logged."""
    return _wanted(f"gt.{layer}", logging.DEBUG) is not None


def debug(layer: str, message: str) -> None:
    """Log a message of a layer: 'client', 'dispatcher', 'worker' or 'compile'."""
    logger = _wanted(f"gt.{layer}", logging.DEBUG)
    if logger is not None:
        logger.debug("%s", message)


def debug_all(layer: str, messages: Iterable[str]) -> None:
    """Log several messages, which are not computed if the layer is not logged."""
    logger = _wanted(f"gt.{layer}", logging.DEBUG)
    if logger is not None:
        for message in messages:
            logger.debug("%s", message)


def verbose(message: str) -> None:
    """Log startup and connections."""
    logger = _wanted("gt", logging.INFO)
    if logger is not None:
        logger.info("%s", message)


def error(message: str) -> None:
    """Log an error that does not stop the program."""
    logging.getLogger("gt").error("%s", message)
