"""Everything GT raises, as one tree.

    GTError
    ├── ShapeError      the shapes of an op's inputs do not fit; raised at once   (also a RuntimeError)
    ├── DimensionError  a tensor has no such dimension; raised at once            (also an IndexError)
    ├── ArgumentError   an argument is invalid; raised at once                    (also a RuntimeError)
    ├── DTypeError      an op does not take this dtype; raised at once            (also a RuntimeError)
    ├── GraphError      backward() on a graph that cannot be differentiated       (also a RuntimeError)
    ├── ConfigError     a file of signals is invalid; names the line              (also a ValueError)
    ├── StateError      saved values do not fit a model, or cannot be saved       (also a RuntimeError)
    ├── ProtocolError   a server received an invalid instruction or message       (also a RuntimeError)
    ├── ConnectionLost  no server answers, or the connection ended                (also a ConnectionError)
    └── WorkerError     an op failed on a worker; raised when its data is read    (also a RuntimeError)

Each is also the built-in error that PyTorch raises in the same situation, so that code written for
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
    """An operation is not defined for a dtype."""


class GraphError(GTError, RuntimeError):
    """There is no graph to compute a gradient from."""


class ConfigError(GTError, ValueError):
    """A signal is unknown, or the file that defines signals is invalid."""


class StateError(GTError, RuntimeError):
    """Saved values do not fit the model they are loaded into, or there is no way to save them."""


class ProtocolError(GTError, RuntimeError):
    """A server received an invalid instruction, such as one that reads an unknown tensor."""


class ConnectionLost(GTError, ConnectionError):
    """No server answers, or the connection was lost. The message has the address and a solution."""


class WorkerError(GTError, RuntimeError):
    """An operation failed on a worker. The message has the operation, its line, and the cause."""
