"""The sharding modifier alone: from instructions to instructions for workers."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.policy import Cluster, ShardingPolicy
from gt.dispatcher.tensor_handle import ShardInfo
from gt.ops import TABLE, Spec
from gt.ops.sharding.kinds import RULES_BY_KIND, gathers
from gt.stream.instructions import (
    CreateTensor,
    Exchange,
    GetData,
    Lost,
    MatmulOp,
    Op,
    Placed,
    ShardOp,
    Signal,
    Upload,
)
from gt.stream.layouts import Placement, Replicated, Sharded, bytes_moved

FOUR = ("a", "b", "c", "d")


def modifier(workers: tuple[str, ...] = FOUR, **settings: Any) -> ShardingStreamModifier:
    return ShardingStreamModifier(enable_sharding=True, workers=workers, **settings)


def randn(result: int, *shape: int) -> Op:
    return Op(result, "randn", (), {"shape": list(shape), "dtype": "float32", "seed": 1}, 0)


def upload(result: int, *shape: int) -> Upload:
    return Upload(result, np.arange(np.prod(shape), dtype="float32").reshape(shape))


def run(stream: ShardingStreamModifier, *commands: Any) -> list[Any]:
    return [one for command in commands for one in stream.process(command)]


def exchanges(stream: list[Any]) -> list[str]:
    """The kinds of exchange in a stream, each once."""
    found = {one.number: one.kind for placed in stream for one in placed.each if isinstance(one, Exchange)}
    return list(found.values())


def with_layout(tensor: int, layout: Any, *workers: int) -> Signal:
    return Signal(tensor, "test", layout, workers)


def test_sharding_is_disabled_by_default_and_then_changes_nothing():
    stream = ShardingStreamModifier(workers=FOUR)
    commands = [randn(0, 128, 64), MatmulOp(0, 0, result=1), GetData(0, 1), 0]
    assert run(stream, *commands) == commands
    assert stream.get_stats()["ops"] == 0


def test_a_large_tensor_is_made_in_parts_along_its_first_axis():
    stream = modifier()
    made = run(stream, randn(7, 128, 64))
    assert [placed.workers for placed in made] == [("a",), ("b",), ("c",), ("d",)]
    assert [placed.each[0].attrs["shape"] for placed in made] == [(32, 64)] * 4
    assert [placed.each[0].attrs["offset"] for placed in made] == [(0, 0), (32, 0), (64, 0), (96, 0)]
    shards = stream.tensor_sharded[7].shards()
    assert shards[1] == ("b", ShardInfo(axis=0, num_shards=4, shard_index=1), (32, 64))


@pytest.mark.parametrize(
    ("shape", "workers", "shapes"),
    [
        ((64, 32), 4, [(16, 32)] * 4),
        ((2048,), 2, [(1024,)] * 2),
        ((2049,), 2, [(1025,), (1024,)]),
        ((3, 4000), 4, [(3, 1000)] * 4),
        ((2047,), 4, [(2047,)]),
        ((3, 3, 1000), 2, [(2, 3, 1000), (1, 3, 1000)]),
        ((), 2, [()]),
    ],
)
def test_the_policy_splits_tensors_of_2048_elements_or_more(shape, workers, shapes):
    stream = modifier(FOUR[:workers])
    run(stream, randn(0, *shape))
    assert [part for _, _, part in stream.tensor_sharded[0].shards()] == shapes


def test_the_threshold_can_be_chosen():
    stream = modifier(shard_threshold=10)
    run(stream, randn(0, 10), randn(1, 9))
    assert len(stream.tensor_sharded[0].shards()) == 4
    assert len(stream.tensor_sharded[1].shards()) == 1


def test_another_policy_can_be_given():
    class Last(ShardingPolicy):
        def place(self, spec: Spec, cluster: Cluster) -> Placement:
            return Placement(Replicated(), cluster.workers[-1:])

    stream = modifier(policy=Last())
    run(stream, randn(0, 128, 64))
    assert stream.tensor_sharded[0].worker == "d"


def test_small_tensors_of_a_client_stay_together_until_their_worker_has_too_many():
    stream = modifier(FOUR[:2])
    run(stream, *[upload(number, 4) for number in range(8)])
    assert {handle.worker for handle in stream.tensor_sharded.values()} == {"a"}
    stream.loads["a"] += 1 << 30
    run(stream, upload(9, 4))
    assert stream.tensor_sharded[9].worker == "b"


def test_memory_decides_how_large_the_parts_are():
    stream = modifier(FOUR[:2], memory={"a": 1 << 20, "b": 3 << 20})
    run(stream, randn(0, 1000, 10))
    assert [part for _, _, part in stream.tensor_sharded[0].shards()] == [(250, 10), (750, 10)]


def test_an_upload_reaches_each_worker_as_its_part():
    (placed,) = run(modifier(FOUR[:2]), upload(0, 50, 64))
    assert placed.workers == ("a", "b")
    np.testing.assert_array_equal(np.concatenate([one.array for one in placed.each]), upload(0, 50, 64).array)


def test_rows_times_a_whole_matrix_need_no_exchange():
    stream = modifier()
    run(
        stream, with_layout(0, Sharded(0)), upload(0, 64, 32), with_layout(1, Replicated()), upload(1, 32, 16)
    )
    (product,) = run(stream, MatmulOp(0, 1, result=2))
    assert product == Placed(FOUR, (MatmulOp(0, 1, result=2),) * 4)
    assert stream.tensor_sharded[2].placement == Placement(Sharded(0, (16,) * 4), FOUR)


def test_a_whole_matrix_times_columns_needs_no_exchange():
    stream = modifier()
    run(
        stream, with_layout(0, Replicated()), upload(0, 64, 32), with_layout(1, Sharded(1)), upload(1, 32, 16)
    )
    assert exchanges(run(stream, MatmulOp(0, 1, result=2))) == []
    assert stream.tensor_sharded[2].placement == Placement(Sharded(1, (4,) * 4), FOUR)


def test_a_product_along_the_split_axis_takes_exactly_one_reduce():
    stream = modifier()
    run(stream, with_layout(0, Sharded(1)), upload(0, 64, 32), with_layout(1, Sharded(0)), upload(1, 32, 16))
    assert exchanges(run(stream, MatmulOp(0, 1, result=2))) == []
    assert str(stream.tensor_sharded[2].placement.layout) == "partial(sum)"
    used = run(stream, Op(3, "relu", (2,), None, 0))
    assert len(exchanges(used)) == 1
    assert exchanges(used)[0] in ("ReduceScatter", "AllReduce")
    assert exchanges(run(stream, Op(4, "exp", (2,), None, 0), GetData(0, 4))) == [], "it is kept"


def test_a_bias_is_added_once():
    stream = modifier(FOUR[:2])
    run(stream, with_layout(0, Sharded(1)), upload(0, 4, 8), with_layout(1, Sharded(1)), upload(1, 6, 8))
    run(stream, with_layout(2, Replicated()), upload(2, 6))
    made = run(stream, Op(3, "linear", (0, 1, 2), None, 0))
    terms = made[0].each
    assert [one.op for one in terms] == ["reshape", "full"]
    assert exchanges(made) == []


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (Sharded(0), Replicated(), "AllGather"),
        (Sharded(0), Sharded(1), "AllToAll"),
        (Replicated(), Sharded(1), "ShardOp"),
    ],
)
def test_another_layout_takes_one_explicit_instruction(before: Any, after: Any, kind: str):
    stream = modifier()
    run(stream, with_layout(0, before), upload(0, 8, 8), with_layout(1, after))
    run(stream, Op(1, "reshape", (0,), {"shape": [8, 8]}, 0))
    assert {name: n for name, n in stream.get_stats()["commands"].items() if n} == {kind: 1}


def test_a_change_of_workers_is_a_move():
    stream = modifier()
    run(stream, with_layout(0, Sharded(0), 0, 1), upload(0, 8, 8), with_layout(1, Sharded(0), 2, 3))
    made = run(stream, Op(1, "neg", (0,), None, 0))
    assert exchanges(made) == ["Move"]
    assert made[0].workers == ("a", "b", "c", "d")


def test_the_plan_that_moves_fewer_bytes_is_chosen():
    stream = modifier()
    run(stream, with_layout(0, Sharded(0)), upload(0, 512, 64), with_layout(1, Sharded(1)), upload(1, 8, 64))
    run(stream, Op(3, "transpose", (1,), {"dim0": 0, "dim1": 1}, 0))
    made = run(stream, MatmulOp(0, 3, result=4))
    (gather,) = {one for placed in made for one in placed.each if isinstance(one, Exchange)}
    assert (gather.kind, gather.tensor) == ("AllGather", 3), "the small one moves"


def test_bytes_moved_are_counted_as_they_travel():
    rows, columns = Placement(Sharded(0, (2, 2)), ("a", "b")), Placement(Sharded(1, (2, 2)), ("a", "b"))
    whole = Placement(Replicated(), ("a", "b"))
    assert bytes_moved((4, 4), "float32", rows, whole) == 2 * 32
    assert bytes_moved((4, 4), "float32", rows, columns) == 2 * 16
    assert bytes_moved((4, 4), "float32", whole, rows) == 0
    assert bytes_moved((4, 4), "float32", rows, Placement(Replicated(), ("b",))) == 32


def test_reshape_keeps_the_split_where_the_axis_survives():
    stream = modifier(FOUR[:2])
    run(stream, with_layout(0, Sharded(0)), upload(0, 8, 6))
    made = run(
        stream,
        Op(1, "reshape", (0,), {"shape": [2, 4, 6]}, 0),
        Op(2, "reshape", (1,), {"shape": [48]}, 0),
        Op(3, "reshape", (2,), {"shape": [4, 12]}, 0),
    )
    assert exchanges(made) == []
    assert [str(stream.tensor_sharded[n].placement.layout) for n in (1, 2, 3)] == ["sharded(0)"] * 3


def test_an_op_without_a_rule_gathers_is_counted_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("GT_VERBOSE", "1")
    stream = modifier()
    run(stream, upload(0, 4096))
    for number in (1, 2):
        run(stream, Op(number, "argsort", (0,), {"dim": 0, "descending": False}, 0))
    assert stream.get_stats()["gathered"] == {"argsort": 1}, "the second time, the copy is there"
    run(stream, upload(3, 4096), Op(4, "argsort", (3,), {"dim": 0, "descending": False}, 0))
    assert stream.get_stats()["gathered"] == {"argsort": 2}
    assert capsys.readouterr().err.count("argsort gathers") == 1


def test_reading_in_parts_requests_from_every_worker_its_own():
    stream = modifier(FOUR[:2])
    run(stream, upload(0, 2048))
    (read,) = run(stream, GetData(5, 0))
    assert read.workers == ("a", "b")
    assert [(one.part.start, one.part.shape, one.part.count) for one in read.each] == [
        ((0,), (1024,), 2),
        ((1024,), (1024,), 2),
    ]


def test_freeing_a_tensor_frees_its_copies():
    stream = modifier(FOUR[:2])
    run(stream, upload(0, 1 << 16), Op(1, "argsort", (0,), {"dim": 0, "descending": False}, 0))
    freed = Counter(placed.workers for placed in run(stream, 0))
    assert freed == {("a", "b"): 1, ("a",): 1}
    assert run(stream, 1) == [Placed(("a",), (1,))]
    assert stream.tensor_sharded == {}


def test_tensors_of_a_lost_worker_are_lost_unless_others_have_copies():
    stream = modifier(FOUR[:2])
    run(stream, upload(0, 4096), with_layout(1, Replicated()), upload(1, 4096))
    freed = list(stream.remove_worker("b", "b is gone"))
    assert freed == [Placed(("a",), (0,))]
    assert stream.lost == {0: "b is gone"}
    assert stream.tensor_sharded[1].placement == Placement(Replicated(), ("a",))
    (answer,) = run(stream, Op(2, "neg", (0,), None, 0), GetData(9, 2))
    assert (answer.request, answer.error) == (9, "b is gone")


def test_a_tensor_that_an_earlier_modifier_lost_stays_lost():
    stream = modifier()
    (answer,) = run(stream, Lost([3], "no luck"), GetData(1, 3))
    assert answer.error == "no luck"


def test_every_op_of_the_table_has_a_rule():
    """Its own, or that of its kind. One op is computed on whole inputs, and has a lowering instead."""
    assert all(row.sharding is not None for row in TABLE.values())
    assert [name for name, row in TABLE.items() if row.sharding is gathers] == ["total_norm"]
    assert set(RULES_BY_KIND) <= {row.kind for row in TABLE.values()}


def test_a_signal_for_a_worker_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="'test' names worker 7, but the workers are 0 to 3"):
        run(modifier(), with_layout(0, Sharded(0), 7), upload(0, 8))


def test_an_array_in_shared_memory_is_cut_by_the_receiver():
    from gt.stream.instructions import ArrayData

    there = CreateTensor(0, ArrayData((4096,), "float32", shared="gt-1-x"))
    (placed,) = run(modifier(FOUR[:2]), there)
    assert [one.part.start for one in placed.each] == [(0,), (2048,)]


def test_a_shard_is_cut_on_a_worker_that_has_all_of_the_tensor():
    stream = modifier(FOUR[:2])
    run(stream, with_layout(0, Replicated()), upload(0, 8, 8), with_layout(1, Sharded(1)))
    made = run(stream, Op(1, "neg", (0,), None, 0))
    cuts = [one for placed in made for one in placed.each if isinstance(one, ShardOp)]
    assert [(one.axis, one.num_shards, one.start, one.stop) for one in cuts] == [(1, 2, 0, 4), (1, 2, 4, 8)]


def test_a_tensor_that_moves_to_several_workers_is_no_load_of_its_first_one_any_more():
    stream = modifier(("a", "b"))
    run(stream, upload(0, 4))
    handle = stream.tensor_sharded[0]
    assert stream.loads == {"a": 16}
    list(stream._change_home(0, handle, Placement(Replicated(), ("a", "b"))))
    assert stream.loads["a"] == 0
    run(stream, 0)
    assert stream.loads["a"] == stream.loads["b"] == 0


def test_a_tensor_whose_worker_is_lost_is_no_load_of_the_worker_that_has_a_copy():
    stream = modifier(("a", "b"))
    run(stream, upload(0, 4))
    list(stream._in_placement(stream.tensor_sharded[0], Placement(Replicated(), ("b",))))
    list(stream.remove_worker("a", "it is gone"))
    assert stream.tensor_sharded[0].placement == Placement(Replicated(), ("b",))
    run(stream, 0)
    assert stream.loads["b"] == 0
