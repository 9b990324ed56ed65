"""Everything GT raises, as one tree.

    GTError
    ├── ShapeError      shapes do not fit; raised at once, in PyTorch's words   (also a RuntimeError)
    ├── DimensionError  no such dimension; raised at once                       (also an IndexError)
    ├── ArgumentError   an argument makes no sense; raised at once                (also a RuntimeError)
    ├── DTypeError      an op does not take this dtype; raised at once          (also a RuntimeError)
    ├── GraphError      backward() on a graph that cannot be differentiated     (also a RuntimeError)
    ├── ConfigError     a file of signals makes no sense; says where it does not  (also a ValueError)
    ├── StateError      saved values do not fit a model, or cannot be saved     (also a RuntimeError)
    ├── ProtocolError   an instruction that makes no sense reached a server     (also a RuntimeError)
    ├── ConnectionLost  no server answers, or it went away                      (also a ConnectionError)
    └── WorkerError     an op failed on a worker; raised when its data is read  (also a RuntimeError)

Each is also the built-in error that PyTorch raises in the same place, so that code written for
PyTorch catches it unchanged.
"""


class GTError(Exception):
    """Any error that GT raises on purpose."""


class ShapeError(GTError, RuntimeError):
    """The shapes of an operation's inputs do not fit together."""


class DimensionError(GTError, IndexError):
    """A dimension was named that the tensor does not have."""


class ArgumentError(GTError, RuntimeError):
    """An argument was given that the operation cannot work with, such as a negative deviation."""


class DTypeError(GTError, RuntimeError):
    """An operation was asked of a dtype that does not have it."""


class GraphError(GTError, RuntimeError):
    """A gradient was asked for where there is no graph to compute it from."""


class ConfigError(GTError, ValueError):
    """A signal is not known, or the file that should say what it means makes no sense."""


class StateError(GTError, RuntimeError):
    """Saved values do not fit the model they are loaded into, or there is no way to save them."""


class ProtocolError(GTError, RuntimeError):
    """A server received an instruction that makes no sense, such as one about an unknown tensor."""


class ConnectionLost(GTError, ConnectionError):
    """No server answers, or the one that did is gone. The message says where, and what to do."""


class WorkerError(GTError, RuntimeError):
    """An operation failed on a worker. The message says which one, where, and why."""
