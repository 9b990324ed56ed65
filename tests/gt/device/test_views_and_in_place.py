"""Views and in-place ops that share memory, against the CPU: random programs of both."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import gt.torch  # noqa: F401 - registers the device
from gt.torch.geometry import Geometry, view_steps

DEVICE = "tapestry"


def _dim(data: st.DataObject, x: torch.Tensor) -> int:
    return data.draw(st.integers(0, x.dim() - 1))


def _view(data: st.DataObject, x: torch.Tensor) -> list[tuple[str, tuple]]:
    """Views that this tensor has, as methods and their arguments."""
    found: list[tuple[str, tuple]] = [("unsqueeze", (data.draw(st.integers(0, x.dim())),)), ("detach", ())]
    if not x.dim():
        return found
    dim = _dim(data, x)
    n = x.shape[dim]
    found += [
        ("transpose", (dim, _dim(data, x))),
        ("flatten", ()) if x.is_contiguous() else ("squeeze", ()),
        ("expand", (2, *x.shape)),
        ("movedim", (dim, _dim(data, x))),
    ]
    if n:
        start = data.draw(st.integers(0, n - 1))
        step = data.draw(st.integers(1, 3))
        found += [
            ("select", (dim, start)),
            ("narrow", (dim, start, data.draw(st.integers(0, n - start)))),
            ("__getitem__", ((*[slice(None)] * dim, slice(start, None, step)),)),
            # Windows that overlap may be read, but what writing to them does is not defined.
            ("unfold", (dim, min(n, step), step)),
            ("unflatten", (dim, (1, n))),
        ]
    if x.dim() > 1 and dim:
        found.append(("diagonal", (0, 0, dim)))
    return found


_CHANGES = [
    ("add_", (1.5,)),
    ("mul_", (2.0,)),
    ("zero_", ()),
    ("fill_", (3.0,)),
    ("neg_", ()),
    ("clamp_", (-1.0, 1.0)),
    ("addcmul_", None),
    ("copy_", None),
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_programs_of_views_and_in_place_ops(data: st.DataObject) -> None:
    size = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    cpu = [torch.arange(float(torch.Size(size).numel())).reshape(size)]
    device = [cpu[0].to(DEVICE)]
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(cpu) - 1))
        x, y = cpu[at], device[at]
        if data.draw(st.booleans()):
            name, args = data.draw(st.sampled_from(_view(data, x)))
            cpu.append(getattr(x, name)(*args))
            device.append(getattr(y, name)(*args))
            assert device[-1].stride() == cpu[-1].stride()
            assert device[-1].storage_offset() == cpu[-1].storage_offset()
            continue
        name, args = data.draw(st.sampled_from(_CHANGES))
        other = torch.arange(float(x.numel())).reshape(x.shape) * 0.5
        given_to_cpu = args if args is not None else (other, other) if name == "addcmul_" else (other,)
        given_to_device = tuple(
            one.to(DEVICE) if isinstance(one, torch.Tensor) else one for one in given_to_cpu
        )
        try:
            getattr(x, name)(*given_to_cpu)
        except RuntimeError:
            with pytest.raises(RuntimeError):  # two elements in one place
                getattr(y, name)(*given_to_device)
            continue
        getattr(y, name)(*given_to_device)
    for x, y in zip(cpu, device, strict=True):
        assert y._version == x._version
        torch.testing.assert_close(y.cpu(), x, rtol=0, atol=0)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_most_views_are_ops_of_the_table(data: st.DataObject) -> None:
    """Only views that no index, permutation and reshape make fall back to strides."""
    size = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    x = torch.empty(size, device="meta")
    base = Geometry(tuple(x.shape), x.stride(), 0)
    for _ in range(data.draw(st.integers(1, 3))):
        dim = _dim(data, x)
        n = x.shape[dim]
        start = data.draw(st.integers(0, n - 1))
        length = data.draw(st.integers(1, n - start))
        x = data.draw(
            st.sampled_from(
                [x.transpose(dim, 0), x.narrow(dim, start, length), x.unsqueeze(dim), x.flatten(dim)]
            )
        )
        if x._base is None and x.numel() != base.numel:
            return  # flatten made a copy
    view = Geometry(tuple(x.shape), x.stride(), int(x.storage_offset()))
    steps = view_steps(base, view)
    if steps is not None:
        shape = base.size
        for step in steps:
            assert step.shape == shape
            shape = tuple(_applied(step.op, step.attrs, torch.empty(shape, device="meta")).shape)
        assert shape == view.size


def test_a_part_of_an_axis_is_one_index() -> None:
    base, whole = Geometry((64, 10), (10, 1), 0), [0, 10, 1]
    for view, rows in (
        (Geometry((8, 10), (10, 1), 300), [30, 38, 1]),
        (Geometry((4, 10), (10, 1), 0), [0, 4, 1]),
    ):
        steps = view_steps(base, view)
        assert steps is not None
        assert [(one.op, one.attrs) for one in steps] == [("getitem", {"index": [rows, whole]})]


def _applied(op: str, attrs: dict, x: torch.Tensor) -> torch.Tensor:
    if op == "getitem":
        return x[tuple(slice(*one) if isinstance(one, list) else one for one in attrs["index"])]
    arguments = {"reshape": "shape", "permute": "dims", "expand": "shape"}
    return (
        x.transpose(attrs["dim0"], attrs["dim1"])
        if op == "transpose"
        else getattr(x, op)(attrs[arguments[op]])
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[1:, ::2].mul_(3),
        lambda x: x.t()[0].zero_(),
        lambda x: x.view(-1)[3:7].copy_(torch.arange(4.0)),
        lambda x: x.diagonal().add_(10),
        lambda x: x.as_strided((2, 2), (1, 5), 2).fill_(7),
        lambda x: x.data.sub_(1),
        lambda x: x.set_(x.clone().t()),
        lambda x: x.resize_(2, 3),
        lambda x: torch.add(x, 1, out=x),
        lambda x: x.unsqueeze_(0).squeeze_(0).t_(),
        lambda x: x.masked_fill_(x > 5, 0),
        lambda x: x.index_put_((torch.tensor([0, 2]).to(x.device),), torch.tensor(4.0).to(x.device)),
    ],
)
def test_a_change_of_part_of_a_tensor(change) -> None:
    x = torch.arange(20.0).reshape(4, 5)
    y = x.to(DEVICE)
    change(x)
    change(y)
    assert y.shape == x.shape
    assert y.stride() == x.stride()
    torch.testing.assert_close(y.cpu(), x, rtol=0, atol=0)


@pytest.mark.parametrize(
    "compute",
    [
        lambda out: torch.arange(5, out=out),
        lambda out: torch.linspace(0, 1, 7, out=out),
        lambda out: torch.full((3,), 2.0, out=out),
        lambda out: torch.eye(3, out=out),
        lambda out: torch.cat([torch.ones(2, device=out.device), torch.zeros(4, device=out.device)], out=out),
        lambda out: torch.mm(torch.eye(3, device=out.device), torch.ones(3, 2, device=out.device), out=out),
    ],
)
@pytest.mark.parametrize("size", [(0,), (4,)])
@pytest.mark.filterwarnings("ignore::UserWarning")  # outputs should be empty or right
def test_an_output_gets_the_size_of_the_result(compute, size: tuple[int, ...]) -> None:
    here, there = torch.zeros(size), torch.zeros(size, device=DEVICE)
    assert compute(there) is there
    torch.testing.assert_close(there.cpu(), compute(here))


def test_complex_numbers_are_seen_as_pairs_and_back() -> None:
    x = torch.arange(6.0).reshape(2, 3) * (1 + 2j)
    y = x.to(DEVICE)
    torch.view_as_real(y)[..., 0].zero_()
    torch.view_as_real(x)[..., 0].zero_()
    torch.testing.assert_close(y.cpu(), x)
    torch.testing.assert_close((y.conj() @ y.t()).cpu(), x.conj() @ x.t())


def test_autograds_errors_for_in_place_ops_are_raised_here_too() -> None:
    w = torch.ones(3, device=DEVICE, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        w.add_(1)
    y = w.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_flow_through_changes_of_views() -> None:
    gradients = []
    for where in ("cpu", DEVICE):
        w = torch.arange(6.0, device=where).reshape(2, 3).requires_grad_()
        x = w * 1
        x[0].mul_(3)
        x[:, 1] = x[:, 2] * 2
        (x * x).sum().backward()
        assert w.grad is not None
        gradients.append(w.grad.cpu())
    torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("channels_last", ["both", "image", "weight"])
def test_convolutions_keep_the_order_of_channels(channels_last: str) -> None:
    def convolve(device: str) -> list[torch.Tensor]:
        x = torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8).to(device)
        layer = torch.nn.Conv2d(3, 4, 3).to(device)
        for p in layer.parameters():
            torch.nn.init.constant_(p, 0.1)
        x = x if channels_last == "weight" else x.to(memory_format=torch.channels_last)
        layer = layer if channels_last == "image" else layer.to(memory_format=torch.channels_last)  # type: ignore
        y = layer(x.requires_grad_())
        rows = y.permute(0, 2, 3, 1).view(-1, 4)
        return [y, rows, *torch.autograd.grad(rows.pow(2).sum(), (x, layer.weight))]

    for ours, other in zip(convolve("tapestry"), convolve("cpu"), strict=True):
        assert ours.stride() == other.stride()
        torch.testing.assert_close(ours.cpu(), other)
        assert ours.cpu().stride() == other.stride()
