"""The auto-started server: a dispatcher and one worker inside the user's own program.

The same classes as anywhere else, with calls instead of sockets.
"""

from gt.dispatcher import Dispatcher
from gt.worker import Worker


def start(engine: str = "pytorch") -> Dispatcher:
    """A dispatcher with one worker."""
    return Dispatcher(Worker("auto_worker", engine))
