// GT's log as text becomes spans, shares, hot paths and places of tensors.

import { describe, expect, it } from "vitest";
import { matcher, moduleRows } from "../src/cluster/modules";
import { collectivesOf, hotRunsOf } from "../src/cluster/summary";
import { endOf, hotPaths, readLine, readTape, shardsOf } from "../src/cluster/tape";
import { formatTick, moveRange, ticksOf, wholeOf, zoomRange } from "../src/cluster/timeline";

const SEED = `1.608s | #0011 | RECV         | CLIENT 006b8b4568           | BinaryOp        |       117B | result=2 op=add left=0 right=1
1.609s | #0012 | WORKER_SEND  | WORKER auto_worker          | WorkerBinaryOp  |       152B | op=add result=006b8b4568_2
1.612s | #0013 | WORKER_RECV  | WORKER auto_worker          | WorkerBinaryOp  |        91B | success=True`;

const LOG = `
   0.100s | #0000 | CONNECT      | WORKER w0          |                    |       0B |
   0.200s | #0001 | RECV         | CLIENT c1          | CreateTensor       |     2.0MB | tensor_id=0 shape=512x1024 dtype=float32
   0.200s | #0002 | RECV         | CLIENT c1          | BinaryOp           |      38B | result=1 op=mul left=0 right=0
   0.201s | #0003 | WORKER_SEND  | WORKER w0          | WorkerCreateTensor |     2.0MB | tensor_id=c1_0 shape=512x1024 dtype=float32
   0.201s | #0004 | WORKER_SEND  | WORKER w0          | WorkerBinaryOp     |      38B | result=c1_1 op=mul left=c1_0 right=c1_0
   0.201s | #0005 | WORKER_SEND  | WORKER w1          | WorkerBinaryOp     |      38B | result=c1_1 op=mul left=c1_0 right=c1_0 layout=Sharded(0)
   0.205s | #0006 | WORKER_RECV  | WORKER w0          | WorkerCreateTensor |       0B | tensor_id=c1_0 success=True
   0.205s | #0007 | WORKER_RECV  | WORKER w0          | WorkerBinaryOp     |       0B | result=c1_1 success=True
   0.207s | #0008 | WORKER_RECV  | WORKER w1          | WorkerBinaryOp     |       0B | result=c1_1 FAILED out of memory | again
   0.300s | #0009 | WORKER_SEND  | WORKER w0          | WorkerFreeTensor   |       1B | tensor_id=c1_0
not a line
`;

describe("a line", () => {
  it("is read as the seed writes it", () => {
    expect(readLine(SEED.split("\n")[0] ?? "")).toEqual({
      time: 1.608,
      sequence: 11,
      event: "RECV",
      role: "CLIENT",
      name: "006b8b4568",
      command: "BinaryOp",
      bytes: 117,
      details: "result=2 op=add left=0 right=1",
    });
  });

  it.each(["", "hello", "1s | 2 | 3", "x | #1 | RECV | CLIENT c | Op | 1B | "])("%j is none", (line) => {
    expect(readLine(line)).toBeUndefined();
  });
});

describe("a tape", () => {
  const tape = readTape(LOG);

  it("has lanes, spans and what could not be read", () => {
    expect([tape.clients, tape.workers, tape.unread]).toEqual([["c1"], ["w0", "w1"], 1]);
    expect(tape.spans).toHaveLength(4);
    expect([tape.first, tape.last]).toEqual([0.1, 0.3]);
  });

  it("shares the time of what was answered together, and finds who asked", () => {
    const [create, mul] = tape.spans;
    expect([create?.start, create?.end, mul?.end]).toEqual(
      [0.201, 0.203, 0.205].map((t) => expect.closeTo(t)),
    );
    expect([mul?.client, mul?.received, mul?.label]).toEqual(["c1", 0.2, "mul"]);
  });

  it("keeps failures whole, also with a bar in them", () => {
    expect(tape.spans[2]?.failed).toBe("out of memory | again");
  });

  it("knows where tensors live, and which were freed", () => {
    expect(tape.held).toMatchObject([
      { tensor: "c1_0", shape: "512x1024", workers: ["w0"], freed: true },
      { tensor: "c1_1", workers: ["w0", "w1"], layout: "Sharded(0)", freed: false },
    ]);
  });

  it("finds who asked also where one instruction is for several workers", () => {
    expect(tape.spans.slice(1, 3).map((span) => [span.worker, span.received])).toEqual([
      ["w0", 0.2],
      ["w1", 0.2],
    ]);
  });

  it("tells along which axis a part was cut", () => {
    const line = "0.1s | #1 | WORKER_SEND | WORKER w0 | WorkerCreateTensor | 1B |";
    const part = readTape(`${line} tensor_id=c1_2 op=rand shape=32x64 at=0x0 of=64x64`);
    expect(part.held).toMatchObject([{ shape: "64x64", layout: "sharded(0)" }]);
    const moved = `${line} tensor_id=c1_3 shape=8\n${line.replace("CreateTensor", "AllGather")} result=c1_4 input=c1_3 from=sharded(0)@w0,w1 to=replicated@w0,w1`;
    expect(readTape(moved).held.map((held) => held.layout)).toEqual(["sharded(0)", "replicated"]);
  });

  it("adds up each client's share", () => {
    expect(tape.shares).toMatchObject([{ client: "c1", instructions: 2, bytes: 2 * 2 ** 20 + 38 }]);
  });

  it("reads the seed's own example, which names the result elsewhere", () => {
    expect(readTape(SEED).spans).toMatchObject([{ worker: "auto_worker", label: "add" }]);
  });

  it("is empty for an empty log", () => {
    expect(readTape("")).toMatchObject({ entries: [], spans: [], clients: [], hot: [] });
  });
});

describe("the end of a log", () => {
  it("is whole lines, as many as fit", () => {
    expect(endOf("one\ntwo\nthree\n", 10)).toBe("two\nthree\n");
    expect(endOf("one\ntwo\nthree\n", 9)).toBe("three\n");
    expect(endOf("one\n", 4)).toBe("one\n");
  });
});

describe("hot paths", () => {
  it("are the sequence that repeats most", () => {
    const ops = ["load", ...Array.from({ length: 10 }, () => ["matmul", "relu", "sum"]).flat(), "print"];
    const lines = ops.map((op, n) => `1.0s | #${n} | RECV | CLIENT c1 | UnaryOp | 1B | result=${n} op=${op}`);
    const entries = lines.flatMap((line) => readLine(line) ?? []);
    expect(hotPaths(entries)).toEqual([
      { client: "c1", length: 3, times: 10, ops: ["matmul", "relu", "sum"] },
    ]);
    expect(hotPaths(entries.slice(0, 5))).toEqual([]);
  });
});

describe("the bands of hot paths", () => {
  const line = (time: number, event: string, command: string, details: string) =>
    `${time}s | #1 | ${event} | WORKER w0 | Worker${command} | 0B | ${details}`;
  const log = [
    line(1, "WORKER_SEND", "HotPathStart", "sequence=cd"),
    line(1, "WORKER_SEND", "BinaryOp", "result=c1_2 op=add"),
    line(1, "WORKER_SEND", "HotPathEnd", "sequence=cd complete=True"),
    line(1.01, "WORKER_RECV", "HotPathStart", "sequence=ab success=True"),
    line(1.01, "WORKER_RECV", "HotPathEnd", "sequence=ab complete=True success=True"),
    line(1.01, "WORKER_RECV", "HotPathStart", "sequence=cd success=True"),
    line(1.01, "WORKER_RECV", "BinaryOp", "result=c1_2 success=True"),
    line(1.02, "WORKER_RECV", "HotPathEnd", "sequence=cd complete=False success=True"),
    line(1.03, "WORKER_RECV", "HotPathStart", "sequence=ab success=True"),
  ].join("\n");
  const tape = readTape(log);

  it("begin with the chunk that they came with, and say whether they were whole", () => {
    expect(tape.unread).toBe(0);
    expect(tape.bands).toEqual([
      { worker: "w0", sequence: "ab", from: 1, to: 1.01, complete: true },
      { worker: "w0", sequence: "cd", from: 1, to: 1.02, complete: false },
      { worker: "w0", sequence: "ab", from: 1.03, to: 1.03, complete: false },
    ]);
  });
  it("are no instructions", () => expect(tape.spans.map((span) => span.label)).toEqual(["add"]));
  it("are added up by what was run", () => {
    expect(hotRunsOf(tape.bands)).toMatchObject([
      { sequence: "cd", times: 1, broken: 1 },
      { sequence: "ab", times: 2, broken: 1, workers: ["w0"] },
    ]);
  });
});

describe("what went between workers", () => {
  const send = (worker: string, command: string, details: string) =>
    `1.0s | #1 | WORKER_SEND | WORKER ${worker} | Worker${command} | 1B | ${details}`;
  const tape = readTape(
    [
      "0.9s | #0 | LAYOUT | CLIENT c1 | Layout | 0B | tensor_id=1 shape=5x8 dtype=float32 layout=sharded(0)@w0,w1 parts=3,2",
      send("w0", "CreateTensor", "tensor_id=c1_1 op=full shape=3x8"),
      send("w1", "CreateTensor", "tensor_id=c1_1 op=full shape=2x8"),
      ...["w0", "w1"].map((worker) =>
        send(
          worker,
          "AllGather",
          "result=c1_9 input=c1_1 shape=5x8 from=sharded(0)@w0,w1 to=replicated@w0,w1 number=4",
        ),
      ),
    ].join("\n"),
  );

  it("is counted once for all who take part", () => {
    expect(collectivesOf(tape.spans)).toMatchObject([
      { command: "AllGather", times: 1, ways: ["sharded(0) → replicated"] },
    ]);
  });
  it("is a copy of a tensor that lies otherwise", () => {
    expect(tape.held).toMatchObject([
      { tensor: "c1_1", shape: "5x8", layout: "sharded(0)", workers: ["w0", "w1"], copyOf: "" },
      { tensor: "c1_9", layout: "replicated", copyOf: "c1_1" },
    ]);
  });
  it("has parts of any size", () => {
    expect(tape.held.map(shardsOf)).toEqual([["[0:3, :]", "[3:5, :]"], []]);
  });
});

describe("the timeline's range", () => {
  const whole = wholeOf(readTape(LOG));

  it("zooms around a point, and never beyond the tape", () => {
    const near = zoomRange(whole, whole, 0.2, 10);
    expect(near.to - near.from).toBeCloseTo((whole.to - whole.from) / 10);
    expect(near.from).toBeLessThan(0.2);
    expect(zoomRange(near, whole, 0.2, 1e-9)).toEqual(whole);
    expect(moveRange(near, whole, 99).to).toBeCloseTo(whole.to);
  });

  it("has ticks at round numbers", () => {
    expect(formatTick(0.2815, [0.2814, 0.2815, 0.2816])).toBe("281.5 ms");
    expect(formatTick(2.5, [2, 2.5])).toBe("2.5 s");
    expect(ticksOf({ from: 0, to: 1 }, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => expect.closeTo(t)));
  });
});

describe("modules", () => {
  const op = (number: number, rest: string) =>
    `1.${number}00s | #000${number} | WORKER_SEND | WORKER w0 | WorkerOp | 9B | result=c1_${number} op=aten::mm ${rest}
1.${number + 1}00s | #0009 | WORKER_RECV | WORKER w0 | WorkerOp | 0B | result=c1_${number} success=True`;
  const tape = readTape(
    [
      op(1, "left=c1_0 right=c1_0 module=model.layers.0.q_proj at=/my files/train.py:3"),
      op(2, "input=c1_1 module=model.layers.0.q_proj phase=backward at=/my files/train.py:4"),
      op(3, "input=c1_1 module=model.layers.1 phase=recompute at=/my files/train.py:4"),
      op(4, "input=c1_1 module=AdamW.step at=/my files/train.py:5"),
      op(5, "input=c1_1"),
    ].join("\n"),
  );
  const rows = (name: string, most?: number) =>
    moduleRows(tape.spans.filter(matcher(name, tape.spans)), most).map((row) => [
      row.depth,
      row.name,
      row.instructions,
      Number(row.forward.toFixed(3)),
      Number(row.backward.toFixed(3)),
    ]);

  it("and lines are read from an op's details", () => {
    expect(tape.spans.map((span) => [span.module, span.phase, span.line]).slice(1)).toEqual([
      ["model.layers.0.q_proj", "backward", "/my files/train.py:4"],
      ["model.layers.1", "recompute", "/my files/train.py:4"],
      ["AdamW.step", "", "/my files/train.py:5"],
      ["", "", ""],
    ]);
  });

  it("are a tree, the slowest first; what has one part only is joined with it", () => {
    expect(rows("")).toEqual([
      [0, "model.layers", 3, 0.1, 0.2],
      [1, "0.q_proj", 2, 0.1, 0.1],
      [1, "1", 1, 0, 0.1],
      [0, "AdamW.step", 1, 0.1, 0],
      [0, "(no module)", 1, 0.1, 0],
    ]);
    expect(rows("", 4).map(([, name]) => name)).toEqual(["model.layers", "AdamW.step", "(no module)"]);
  });

  it("are found by a part of their path, or by its beginning", () => {
    expect(rows("layers.1")).toEqual([[0, "model.layers.1", 1, 0, 0.1]]);
    expect(rows("q_pr")).toEqual([[0, "model.layers.0.q_proj", 2, 0.1, 0.1]]);
    expect(rows("(no module)")).toEqual([[0, "(no module)", 1, 0.1, 0]]);
    expect(rows("proj")).toEqual([]);
  });
});
