"""The dispatcher: receives instructions from many clients and sends them to workers.

It tracks the location of every tensor (`TensorHandle`) and logs every instruction (`InstructionStream`). With
several workers, a `ShardingStreamModifier` for each client distributes its tensors over them. Imports
`gt.ops`, `gt.stream` and `gt.transport`; clients and workers are reached through links (`links.py`) that the
server provides.
"""

from gt.dispatcher.dispatcher import Dispatcher
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.tensor_handle import ShardInfo, TensorHandle

__all__ = ["Dispatcher", "InstructionStream", "ShardInfo", "ShardingStreamModifier", "TensorHandle"]
