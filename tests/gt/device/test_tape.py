"""Each op of a PyTorch program is on the tape with the module and the user's line that issued it."""

import itertools
import json
import re
from collections import OrderedDict
from pathlib import Path

import pytest
from torch import nn

import gt
import gt.torch
from gt.inspect import timeline, top
from gt.inspect.picture import draw
from gt.inspect.tape import read_tape
from tests.gt.device.op_sites import DEVICE, OpSite, line, modules, op_sites, x
from tests.gt.helpers.servers import Cluster
from tests.programs import ROOT, run_python

pytestmark = pytest.mark.usefixtures("server")


LLAMA = """
import torch, transformers, gt, gt.torch
gt.init(workers=1)
config = transformers.LlamaConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, max_position_embeddings=32,
)
model = transformers.LlamaForCausalLM(config).to("tapestry")
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.arange(16).reshape(2, 8).to("tapestry")
for step in range(3):
    optimizer.zero_grad()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    loss.item()
model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=2, do_sample=False).tolist()
"""


@pytest.fixture(scope="module")
def llama_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tape of a Llama of Hugging Face that is trained on a worker of its own process."""
    folder = tmp_path_factory.mktemp("llama")
    (folder / "train.py").write_text(LLAMA)
    environment = {"GT_INSTRUCTION_LOG": str(folder / "gt.log"), "PYTHONPATH": str(ROOT)}
    run_python("train.py", cwd=folder, environment=environment)
    return folder / "gt.log"


def test_a_llamas_ops_have_their_modules_and_the_scripts_lines(llama_log: Path):
    tape = read_tape(llama_log.read_text().splitlines())
    found = op_sites(tape)
    forward, backward = line("labels=tokens).loss", LLAMA), line("loss.backward()", LLAMA)
    assert tape.unread == 0
    assert {span.line.rpartition(":")[0] for span in tape.spans if span.is_op} == {
        str(llama_log.parent / "train.py")
    }
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        path = f"model.layers.1.self_attn.{name}"
        assert OpSite("linear", path, "", forward) in found
        assert OpSite("matmul", path, "backward", backward) in found
    assert OpSite("embedding", "model.embed_tokens", "", forward) in found
    assert OpSite("embedding_grad", "model.embed_tokens", "backward", backward) in found
    assert OpSite("aten::silu", "model.layers.0.mlp.act_fn", "", forward) in found
    assert OpSite("log_softmax", "LlamaForCausalLM", "", forward) in found
    stepping = [one for one in found if one.line == line("optimizer.step()", LLAMA)]
    assert {one.module for one in stepping} == {"AdamW.step"}
    assert {one.module for one in found if one.line == forward} >= {"lm_head", "model.norm", "model.layers.0"}
    assert all(one.phase == "backward" for one in found if one.line == backward and one.module)


def test_each_step_has_the_same_sites(llama_log: Path):
    tape = read_tape(llama_log.read_text().splitlines())
    sites = [entry for entry in tape.entries if entry.command == "Site" and entry.event == "RECV"]
    assert len({entry.details.partition(" ")[2] for entry in sites}) == len(sites) < 120
    found = op_sites(tape)
    starts = [n for n, one in enumerate(found) if one.op == "embedding"]
    second, third = (found[a:b] for a, b in itertools.pairwise(starts[1:4]))
    assert len(second) > 400
    assert second == third[: len(second)]


def test_generating_has_the_modules_too(llama_log: Path):
    found = op_sites(read_tape(llama_log.read_text().splitlines()))
    mine = [one for one in found if one.line == line("do_sample=False).tolist()", LLAMA)]
    assert [one.op for one in mine if one.module == "model.embed_tokens"] == ["embedding"] * 2
    assert ("model.layers.1.self_attn.q_proj", "") in modules(mine)
    assert {one.phase for one in mine} == {""}


def test_top_shows_where_the_time_goes(llama_log: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert top.main(["--log", str(llama_log), "--once"]) == 0
    shown = capsys.readouterr().out
    for name in ("module", "instructions", "forward s", "backward s", "share"):
        assert name in shown
    for name in ("model", "  layers", "    1", "AdamW.step", "lm_head", "LlamaForCausalLM", "(no module)"):
        assert re.search(rf"│ {re.escape(name)} +│ +[\d,]+ │", shown), name
    assert top.main(["--log", str(llama_log), "--once", "--module", "layers.0.mlp"]) == 0
    shown = capsys.readouterr().out.partition("modules: layers.0.mlp")[2]
    assert re.search(r"│ model.layers.0.mlp +│", shown)
    assert re.search(r"│   down_proj +│", shown)
    assert "self_attn" not in shown


def test_top_shows_the_modules_of_a_running_server(pytorch_cluster: Cluster, capsys):
    host, _, port = pytorch_cluster.address.removeprefix("tcp://").rpartition(":")
    gt.connect(f"{host}:{port}")
    # The server is shared with other tests, and no other has a module of this name.
    model = nn.Sequential(OrderedDict(shown=nn.Linear(4, 4), other=nn.ReLU())).to(DEVICE)
    model(x(2, 4)).cpu()
    assert top.main(["--host", host, "-p", port, "--once"]) == 0
    assert re.search(r"│ shown +│ +1 │", capsys.readouterr().out)
    gt.close()


def test_perfetto_and_the_picture_have_the_modules(llama_log: Path, tmp_path: Path):
    target = tmp_path / "out.json"
    assert timeline.main([str(llama_log), "--perfetto", str(target), "-o", str(tmp_path / "out.png")]) == 0
    events = json.loads(target.read_text())["traceEvents"]
    lines = {
        (event["args"].get("phase"), event["args"]["line"].rpartition(":")[2])
        for event in events
        if event.get("args", {}).get("module") == "model.layers.0.self_attn.q_proj"
    }
    forward, backward = line("labels=tokens).loss", LLAMA), line("loss.backward()", LLAMA)
    assert {(None, str(forward)), ("backward", str(backward))} <= lines
    text = (
        "1.0s | #1 | WORKER_SEND | WORKER w0 | WorkerOp | 1B | result=c1_1 op=aten::mm module=a.b at=x.py:1"
    )
    named, plain = (read_tape([one]) for one in (text, text.replace(" module=a.b", "")))
    for tape in (named, plain):
        tape.entries.append(tape.entries[0]._replace(elapsed=2.0))
        tape.spans[0].end = 2.0
    assert draw(named).tobytes() != draw(plain).tobytes()
