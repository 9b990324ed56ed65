// Each op type has its renderer, and an unknown type is shown, too.

import { describe, expect, it } from "vitest";
import { atomic } from "../ops/atomic";
import { dot, stepsOf } from "../ops/dot";
import { load } from "../ops/load";
import { rendererOf } from "../ops/registry";
import { store } from "../ops/store";
import { unknown } from "../ops/unknown";
import type { Access, Dot, Op } from "../src/types";

const common = { uuid: "0-0-0.0.0", line: 7, path: 0, iterations: [] as [number, number][], fields: {} };
const access: Access = {
  ...common,
  type: "Load",
  tensor: "x",
  block: [5],
  touched: 2,
  masked: 3,
  outside: 0,
  bytes: 8,
  operation: "",
};
const product: Dot = {
  ...common,
  uuid: "0-1-0.0.0",
  type: "Dot",
  left: [16, 32],
  right: [32, 8],
  result: [16, 8],
  dtype: "fp32",
  left_op: access.uuid,
  right_op: "",
  result_op: "",
};

describe("the registry", () => {
  it("knows loads, stores, atomics, dots, reductions and scans", () => {
    expect(rendererOf(access)).toBe(load);
    expect(rendererOf({ ...access, type: "Store" })).toBe(store);
    expect(rendererOf({ ...access, type: "Atomic" })).toBe(atomic);
    expect(rendererOf(product)).toBe(dot);
    expect(rendererOf({ ...common, type: "Reduce" })).not.toBe(unknown);
    expect(rendererOf({ ...common, type: "Scan" })).not.toBe(unknown);
  });

  it.each(["Barrier", "", "constructor", "toString"])("shows the unknown type %j generically", (type) => {
    expect(rendererOf({ ...common, type })).toBe(unknown);
  });

  it("counts and marks the elements of an access", () => {
    expect(load.counts?.(access)).toEqual([2, 3]);
    expect(load.marks?.(access, [])).toMatchObject([{ tensor: "x", uuid: access.uuid, colour: "--load" }]);
  });

  it("marks the tiles of a dot in the tensors that they come from", () => {
    expect(dot.marks?.(product, [access, product])).toMatchObject([{ tensor: "x", uuid: access.uuid }]);
    expect(dot.marks?.({ ...product, left_op: "" }, [access])).toEqual([]);
  });

  it("labels ops by their tensor's name or their shapes", () => {
    expect(load.label(access)).toBe("x");
    expect(load.label({ ...access, tensor: "" })).toBe("no tensor");
    expect(dot.label(product)).toBe("16×32 @ 32×8");
    const sum: Op = { ...common, type: "Reduce", fields: { combine: "sum", axis: 0, input: [64] } };
    expect(rendererOf(sum).label(sum)).toBe("sum 64");
  });
});

describe("the k-loop", () => {
  it("counts the dots of one place within the loops around the innermost", () => {
    const at = (outer: number, k: number): Dot => ({
      ...product,
      iterations: [
        [5, outer],
        [6, k],
      ],
    });
    const ops = [at(0, 0), at(0, 1), at(0, 2), at(1, 0), at(1, 1), at(1, 2)];
    expect(ops.map((op) => stepsOf(op, ops))).toEqual(
      [0, 1, 2, 0, 1, 2].map((step) => ({ at: step, count: 3 })),
    );
  });
});
