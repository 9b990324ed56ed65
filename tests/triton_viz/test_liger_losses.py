"""Third-party kernels: the losses of liger-kernel run on a CPU, forward and backward, as in PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from liger_kernel import ops

from tests.triton_viz.helpers.agreement import agree, ints, randn

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
IGNORED = -100


def labels(classes: int, rows: int) -> torch.Tensor:
    """Some of every class, and some rows to leave out."""
    chosen = ints(classes, rows, seed=5)
    chosen[1::4] = IGNORED
    return chosen


def reduced(per_row: torch.Tensor, target: torch.Tensor, reduction: str) -> torch.Tensor:
    kept = per_row.masked_fill(target == IGNORED, 0)
    if reduction == "none":
        return kept
    return kept.sum() / ((target != IGNORED).sum() if reduction == "mean" else 1)


# ---------------------------------------------------------------------------------------- cross entropy


def cross_entropy(x, target, weight, z_scale, smoothing, reduction, softcap):
    if softcap is not None:
        x = softcap * torch.tanh(x / softcap)
    loss = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)
    z_loss = reduced(z_scale * x.logsumexp(-1).square(), target, reduction)
    return loss + z_loss, z_loss.detach()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("z_scale", "smoothing", "softcap", "weighted"),
    [
        (0.0, 0.0, None, False),
        (1e-2, 0.0, None, False),
        (0.0, 0.1, None, False),
        (0.0, 0.0, 3.0, False),
        (0.0, 0.1, None, True),
        (1e-2, 0.1, 3.0, True),
    ],
    ids=["plain", "z loss", "smoothing", "softcap", "weights", "everything"],
)
def test_cross_entropy(reduction, z_scale, smoothing, softcap, weighted):
    target = labels(50, 13)
    weight = randn(50, seed=8).detach().abs() if weighted else None

    def liger(x):
        loss, z_loss, _, _ = ops.LigerCrossEntropyFunction.apply(
            x, target, weight, IGNORED, z_scale, smoothing, reduction, softcap, True
        )
        return loss, z_loss.detach()

    agree(
        liger,
        lambda x: cross_entropy(x, target, weight, z_scale, smoothing, reduction, softcap),
        randn(13, 50),
        tolerance=1e-4,
    )


def test_cross_entropy_in_bfloat16():
    target = labels(50, 13)
    agree(
        lambda x: ops.LigerCrossEntropyFunction.apply(x, target, None)[0],
        lambda x: F.cross_entropy(x, target),
        randn(13, 50, dtype=torch.bfloat16),
    )


def test_cross_entropy_of_more_classes_than_a_block_holds():
    target = labels(40_000, 3)
    agree(
        lambda x: ops.LigerCrossEntropyFunction.apply(x, target, None)[0],
        lambda x: F.cross_entropy(x, target),
        randn(3, 40_000),
    )


def test_cross_entropy_without_gradients_of_classes_that_cannot_be():
    x = torch.full((2, 8), -torch.inf)
    x[:, 0], x[1, 3] = 0, 1
    target = torch.tensor([0, 3])
    agree(
        lambda x: ops.LigerCrossEntropyFunction.apply(x, target, None)[0],
        lambda x: F.cross_entropy(x, target),
        x,
    )


def test_cross_entropy_says_what_it_predicts():
    target = labels(20, 13)

    def liger(x):
        target[0] = x[0].argmax()  # one is right
        loss, _, accuracy, predicted = ops.LigerCrossEntropyFunction.apply(
            x, target, None, IGNORED, 0.0, 0.0, "mean", None, False, True, True
        )
        return loss, accuracy.detach(), predicted.detach()

    def reference(x):
        kept = target != IGNORED
        predicted = torch.where(kept, x.argmax(-1), -1)
        return F.cross_entropy(x, target), (predicted == target)[kept].float().mean(), predicted

    agree(liger, reference, randn(13, 20))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_vocab_parallel_cross_entropy_on_one_rank(smoothing):
    target = labels(30, 8).reshape(4, 2)
    agree(
        lambda x: ops.LigerVocabParallelCEFunction.apply(
            x, target, None, IGNORED, smoothing, "pytorch", "global"
        ),
        lambda x: F.cross_entropy(
            x.movedim(-1, 1), target, ignore_index=IGNORED, reduction="none", label_smoothing=smoothing
        ),
        randn(4, 2, 30),
        tolerance=1e-4,
    )


@BOTH
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_fused_linear_cross_entropy(dtype, softcap):
    target = labels(40, 11)

    def reference(x, weight, bias):
        logits = F.linear(x, weight, bias)
        return F.cross_entropy(logits if softcap is None else softcap * torch.tanh(logits / softcap), target)

    agree(
        lambda x, weight, bias: ops.LigerFusedLinearCrossEntropyFunction.apply(
            x, weight, target, bias, None, IGNORED, 0.0, 0.0, "mean", softcap
        )[0],
        reference,
        randn(11, 16, dtype=dtype),
        randn(40, 16, seed=1, dtype=dtype),
        randn(40, seed=2, dtype=dtype),
        tolerance=1e-4 if dtype == torch.float32 else 5e-2,
    )


def test_fused_linear_cross_entropy_that_scales_each_token_by_its_probability():
    target = labels(40, 11)

    def reference(x, weight):
        losses = F.cross_entropy(F.linear(x, weight), target, reduction="none")
        return (losses * torch.exp(-losses.detach())).sum() / (target != IGNORED).sum()

    agree(
        lambda x, weight: ops.LigerFusedLinearCrossEntropyFunction.apply(
            x, weight, target, None, None, IGNORED, 0.0, 0.0, "mean", None, False, None, True
        )[0],
        reference,
        randn(11, 16),
        randn(40, 16, seed=1),
        tolerance=1e-4,
    )


# -------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
def test_kl_div(reduction, log_target):
    target = randn(6, 45, seed=1).detach().softmax(-1)
    target = target.log() if log_target else target

    agree(
        lambda x: ops.LigerKLDivLossFunction.apply(x, target, reduction, log_target),
        lambda x: F.kl_div(x, target, reduction=reduction, log_target=log_target),
        randn(6, 45).detach().log_softmax(-1).requires_grad_(),
    )


def jensen_shannon(x, y, beta):
    """Per row, of log-probabilities: the student's and the teacher's."""
    if beta in (0.0, 1.0):
        first, second = (y, x) if beta == 0.0 else (x, y)
        return (first.exp() * (first - second)).sum(-1)
    mixture = (beta * y.exp() + (1 - beta) * x.exp()).log()
    return (beta * y.exp() * (y - mixture) + (1 - beta) * x.exp() * (x - mixture)).sum(-1)


@BOTH
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_jsd(dtype, beta):
    target = labels(45, 6)
    teacher = randn(6, 45, seed=1).detach().log_softmax(-1).to(dtype)

    agree(
        lambda x: ops.LigerJSDFunction.apply(x, teacher, target, beta),
        lambda x: reduced(jensen_shannon(x, teacher.float(), beta), target, "mean"),
        randn(6, 45).detach().log_softmax(-1).to(dtype).requires_grad_(),
    )


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_fused_linear_jsd(beta):
    target = labels(45, 6)
    teacher_x, teacher_w = randn(6, 20, seed=2).detach(), randn(45, 20, seed=3).detach()

    def reference(x, w):
        student, teacher = ((a @ b.T / 2.0).log_softmax(-1) for a, b in ((x, w), (teacher_x, teacher_w)))
        return reduced(jensen_shannon(student, teacher, beta), target, "mean")

    agree(
        lambda x, w: ops.LigerFusedLinearJSDFunction.apply(
            x, w, teacher_x, teacher_w, target, beta, IGNORED, 2.0
        ),
        reference,
        randn(6, 16),
        randn(45, 16, seed=1),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("reduction", ["sum", "mean", "batchmean"])
def test_fused_linear_kl_div(reduction):
    target = labels(45, 6)
    teacher = randn(6, 45, seed=2).detach().softmax(-1)

    def reference(x, w):
        student = (x @ w.T / 1.5).log_softmax(-1)
        per_row = F.kl_div(student, teacher, reduction="none").sum(-1)
        total = reduced(per_row, target, "sum" if reduction == "sum" else "mean")
        return total / 45 if reduction == "mean" else total

    agree(
        lambda x, w: ops.LigerFusedLinearKLDivFunction.apply(x, w, teacher, target, reduction, IGNORED, 1.5),
        reference,
        randn(6, 16),
        randn(45, 16, seed=1),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
def test_tvd(reduction):
    target = labels(45, 6)
    q = randn(6, 45, seed=1).detach().softmax(-1)

    def reference(p):
        halves = 0.5 * (p - q).abs().masked_fill((target == IGNORED)[:, None], 0)
        kept = (target != IGNORED).sum()
        scale = {"none": 1, "sum": 1, "mean": kept * 45, "batchmean": kept}[reduction]
        return halves if reduction == "none" else halves.sum() / scale

    agree(
        lambda p: ops.LigerTVDLossFunction.apply(p, q, target, reduction),
        reference,
        randn(6, 45).detach().softmax(-1).requires_grad_(),
    )


def test_fused_cross_entropy_and_tvd():
    target = labels(45, 6)
    teacher = randn(6, 45, seed=1).detach()

    def reference(x):
        apart = 0.5 * (x.softmax(-1) - teacher.softmax(-1)).abs().sum(-1)
        return F.cross_entropy(x, target, reduction="none"), reduced(apart, target, "none")

    agree(lambda x: ops.LigerFusedCETVDFunction.apply(x, teacher, target), reference, randn(6, 45))


# ---------------------------------------------------------------------------- reinforcement learning


TEMPERATURE, BETA, LOW, HIGH = 0.9, 0.04, 0.2, 0.3


def policy(logits, ids):
    """The log-probability of each token that was taken."""
    return (logits[:, :-1] / TEMPERATURE).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)


def surrogate(kind, ratio, advantage, logp):
    if kind == "cispo":
        return -ratio.detach().clamp(max=HIGH) * advantage * logp
    if kind == "sapo":
        heat = torch.where(advantage > 0, 1.0, 1.05)
        return -torch.sigmoid(heat * (ratio - 1)) * 4 / heat * advantage
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - LOW, 1 + HIGH) * advantage)


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        *((kind, "token") for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")),
        ("grpo", "sequence"),
    ],
)
def test_grpo_loss(kind, level):
    rows, length, words = 3, 7, 33
    ids = ints(words, rows, length)
    old, ref = (
        policy(randn(rows, length + 1, words, seed=seed).detach(), ids).contiguous() for seed in (1, 2)
    )
    advantage = torch.tensor([1.5, -0.5, 0.3])
    mask = (torch.arange(length) < torch.tensor([7, 4, 5])[:, None]).int()

    def liger(logits):
        return ops.GrpoLossFunction.apply(
            *(logits, old, ref, ids, advantage, mask, TEMPERATURE, BETA, LOW, HIGH, False),
            *(kind, None, True, level),
        )[0]

    def reference(logits):
        logp = policy(logits, ids)
        shift = logp - old
        if level == "sequence":
            shift = ((shift * mask).sum(-1) / mask.sum(-1))[:, None]
        kl = torch.exp(ref - logp) - (ref - logp) - 1
        losses = (surrogate(kind, shift.exp(), advantage[:, None], logp) + BETA * kl) * mask
        if kind in ("grpo", "sapo"):
            return (losses.sum(-1) / mask.sum(-1)).mean()
        return losses.sum() / (rows * length if kind == "dr_grpo" else mask.sum())

    agree(liger, reference, randn(rows, length + 1, words), tolerance=1e-4)


def test_grpo_loss_without_a_mask_an_old_policy_or_a_reference():
    ids = ints(33, 2, 5)
    advantage = torch.tensor([1.5, -0.5])

    def liger(logits):
        return ops.GrpoLossFunction.apply(
            logits, None, None, ids, advantage, None, TEMPERATURE, 0.0, LOW, HIGH, False
        )[0]

    def reference(logits):
        logp = policy(logits, ids)
        return -(torch.exp(logp - logp.detach()) * advantage[:, None]).mean()

    agree(liger, reference, randn(2, 6, 33), tolerance=1e-4)
