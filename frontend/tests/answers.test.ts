// Binary answers, colours and the roofline.

import { describe, expect, it } from "vitest";
import { unpack } from "../src/api";
import { mix, parseRgb, share } from "../src/colours";
import { axisOf, spanOf } from "../src/roofline";

function pack(dtype: string, numbers: Uint8Array | Float32Array): ArrayBuffer {
  const header = JSON.stringify({
    across: 3,
    down: 2,
    layers: [{ name: "marks", dtype, low: 0, high: 5 }],
  });
  const text = new TextEncoder().encode(header);
  const start = 8 + Math.ceil(text.length / 8) * 8;
  const buffer = new ArrayBuffer(start + Math.ceil(numbers.byteLength / 8) * 8);
  new DataView(buffer).setBigUint64(0, BigInt(text.length), true);
  new Uint8Array(buffer).set(text, 8);
  new Uint8Array(buffer).set(new Uint8Array(numbers.buffer), start);
  return buffer;
}

describe("a binary answer", () => {
  it("holds a number for each cell", () => {
    const numbers = Float32Array.of(1, 2, 3, 4, 5, Number.NaN);
    expect(unpack(pack("float32", numbers))).toEqual({ across: 3, down: 2, numbers, low: 0, high: 5 });
    const marks = Uint8Array.of(0, 1, 2, 3, 0, 1);
    expect(unpack(pack("uint8", marks)).numbers).toEqual(marks);
  });
});

describe("colours", () => {
  it("are mixed between their stops", () => {
    const stops: [number, number, number][] = [
      [0, 0, 0],
      [100, 0, 0],
      [100, 200, 0],
    ];
    expect(mix(stops, 0)).toEqual([0, 0, 0]);
    expect(mix(stops, 0.25)).toEqual([50, 0, 0]);
    expect(mix(stops, 1)).toEqual([100, 200, 0]);
    expect(mix(stops, 7)).toEqual([100, 200, 0]);
  });

  it("are read as browsers write them", () => {
    expect(parseRgb("rgb(1, 2, 3)")).toEqual([1, 2, 3]);
    expect(share(5, 0, 10)).toBe(0.5);
    expect(share(5, 5, 5)).toBe(0.75);
  });
});

describe("the roofline", () => {
  it("has the ridge and the kernel inside", () => {
    for (const intensity of [1e-4, 0.1, 30, 1e5]) {
      const roof = { intensity, attainable: Math.min(1e12, intensity * 1e12), flops: 5e13, bandwidth: 3e12 };
      const span = spanOf(roof);
      expect(span.left).toBeLessThan(roof.flops / roof.bandwidth);
      expect(span.right).toBeGreaterThan(Math.max(intensity, roof.flops / roof.bandwidth));
      expect(span.top).toBeGreaterThan(roof.flops);
      expect(span.bottom).toBeLessThanOrEqual(roof.attainable);
    }
  });

  it("is drawn by powers of ten", () => {
    const x = axisOf(1, 1000, 0, 300);
    expect([1, 10, 1000].map(x)).toEqual([0, 100, 300].map((v) => expect.closeTo(v)));
  });
});
