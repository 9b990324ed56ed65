"""The site of an op: the line of the user's code, and the module, that issued it.

The frames between the user's line and a kernel are of PyTorch, of this package and of other installed ones. A
call in the code is looked up once for each scope that it runs in. Ops of a backward pass have the line that
started the pass, and the module whose forward pass made the current node.
"""

import sys
from types import FrameType

from gt.client.client import Client
from gt.torch import scopes
from gt.torch.scopes import Scope, current, of_current_node

_frame = sys._getframe


def site(client: Client) -> int:
    """The number of the current op's site; kernels call this directly."""
    scope = current()
    if scope.is_backward:
        return _in_backward(client, scope)
    sites = client.sites
    frame: FrameType | None = _frame(1)
    while (frame := frame.f_back) is not None:
        number = sites.get((scope, id(frame.f_code), frame.f_lasti))
        if number is None:
            number = _add(client, scope, frame)
        if number >= 0:
            return number
    return client.site_number(scopes.line_of(scope, _frame(1))[0], scope.path, scope.phase)


def _add(client: Client, scope: Scope, frame: FrameType) -> int:
    line, sure = scopes.line_of(scope, frame)
    # The user's code may call a library's function directly in the same scope, too.
    sure &= scopes.is_user_code(frame) or scopes.is_called_by_scope(frame)
    number = client.site_number(line, scope.path, scope.phase) if sure else -1
    client.keep_site(frame.f_code, (scope, id(frame.f_code), frame.f_lasti), number)
    return number


def _in_backward(client: Client, scope: Scope) -> int:
    made_by, phase = of_current_node()
    number = client.sites.get((scope, made_by, phase))
    if number is None:
        number = client.site_number(scope.line, made_by.path, phase)
        client.sites[scope, made_by, phase] = number
    return number
