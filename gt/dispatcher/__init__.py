"""The dispatcher: takes instructions from many clients and passes them to workers.

It knows where every tensor lives (`TensorHandle`) and sees every instruction (`InstructionStream`).
Imports `gt.ops` and `gt.transport`; reaches workers only through encoded messages.
"""

from gt.dispatcher.dispatcher import Dispatcher
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.tensor_handle import TensorHandle

__all__ = ["Dispatcher", "InstructionStream", "TensorHandle"]
