// Each op type has its renderer, and a type that nobody knows is shown all the same.

import { describe, expect, it } from "vitest";
import { atomic } from "../ops/atomic";
import { dot } from "../ops/dot";
import { load } from "../ops/load";
import { rendererOf } from "../ops/registry";
import { store } from "../ops/store";
import { unknown } from "../ops/unknown";
import type { Access, Dot, Op } from "../src/types";

const common = { uuid: "0-0", line: 7 };
const access: Access = { ...common, type: "Load", tensor: "x", elements: [1, 2], outside: 0, masked: 3 };
const product: Dot = { ...common, type: "Dot", left: [16, 32], right: [32, 8], result: [16, 8] };

describe("the registry", () => {
  it("knows loads, stores, atomics and dots", () => {
    expect(rendererOf(access)).toBe(load);
    expect(rendererOf({ ...access, type: "Store" })).toBe(store);
    expect(rendererOf({ ...access, type: "Atomic" })).toBe(atomic);
    expect(rendererOf(product)).toBe(dot);
  });

  it.each(["Barrier", "", "constructor", "toString"])("shows the unknown type %j generically", (type) => {
    expect(rendererOf({ ...common, type })).toBe(unknown);
  });

  it("marks the elements of an access, also one of unknown type, and none of a dot", () => {
    const strange: Op = { ...access, type: "Prefetch" };
    expect(rendererOf(access).touched(access)).toMatchObject({ tensor: "x", elements: [1, 2], masked: 3 });
    expect(rendererOf(strange).touched(strange)).toEqual({ tensor: "x", elements: [1, 2], masked: 3 });
    expect(rendererOf(product).touched(product)).toBeUndefined();
    expect(unknown.touched({ ...common, type: "Barrier" })).toBeUndefined();
  });

  it("labels ops by their tensor's name or their shapes", () => {
    expect(load.label(access)).toBe("x");
    expect(load.label({ ...access, tensor: "" })).toBe("no tensor");
    expect(dot.label(product)).toBe("16×32 @ 32×8");
  });
});
