"""The dispatcher: takes instructions from many clients and passes them to workers.

It knows where every tensor lives (`TensorHandle`) and sees every instruction (`InstructionStream`). With
several workers, a `ShardingStreamModifier` for each client spreads its tensors over them.
Imports `gt.ops` and `gt.transport`; reaches workers only through encoded messages.
"""

from gt.dispatcher.dispatcher import Dispatcher
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.tensor_handle import ShardInfo, TensorHandle

__all__ = ["Dispatcher", "InstructionStream", "ShardInfo", "ShardingStreamModifier", "TensorHandle"]
