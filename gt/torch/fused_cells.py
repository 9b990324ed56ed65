"""The cells of LSTM and GRU layers, which PyTorch expects of a device as one op each.

Their forward and backward formulas as ops of the device.
"""

import torch

Tensor = torch.Tensor


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel of `aten::_thnn_fused_lstm_cell`: the new hidden and cell states, and the gates."""
    gates = input_gates + hidden_gates
    if input_bias is not None and hidden_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The kernel of `aten::_thnn_fused_lstm_cell_backward_impl`."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    squashed = cy.tanh()
    dc = grad_cy if grad_cy is not None else torch.zeros_like(cy)
    if grad_hy is not None:
        dc = dc + grad_hy * o * (1 - squashed * squashed)
        do = grad_hy * squashed * o * (1 - o)
    else:
        do = torch.zeros_like(o)
    gates = torch.cat((dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g * g), do), 1)
    return gates, dc * f, gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The kernel of `aten::_thnn_fused_gru_cell`: the new state, and the values that its gradient needs."""
    if input_bias is not None and hidden_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    ir, iz, inew = input_gates.chunk(3, 1)
    hr, hz, hnew = hidden_gates.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (inew + r * hnew).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hnew), 1)


def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """The kernel of `aten::_thnn_fused_gru_cell_backward`."""
    r, z, n, hx, hnew = workspace.chunk(5, 1)
    dn = grad_hy * (1 - z) * (1 - n * n)
    dz = grad_hy * (hx - n) * z * (1 - z)
    dr = dn * hnew * r * (1 - r)
    input_gates = torch.cat((dr, dz, dn), 1)
    hidden_gates = torch.cat((dr, dz, dn * r), 1)
    if not has_bias:
        return input_gates, hidden_gates, grad_hy * z, None, None
    return input_gates, hidden_gates, grad_hy * z, input_gates.sum(0), hidden_gates.sum(0)


KERNELS = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
"""By the name of the overload."""
