// Programs in order and on the map, and numbers in words.

import { describe, expect, it } from "vitest";
import { formatBytes, formatNumber, formatSeconds, formatShare, formatShort } from "../src/format";
import { gridShape, positionOf, programAt } from "../src/map";

describe("programs", () => {
  it("are counted with x fastest", () => {
    expect(programAt([3, 4, 2], 1)).toEqual([1, 0, 0]);
    expect(programAt([3, 4, 2], 3)).toEqual([0, 1, 0]);
    expect(programAt([3, 4, 2], 12)).toEqual([0, 0, 1]);
  });

  it("lead back to their position", () => {
    for (let position = 0; position < 24; position++) {
      expect(positionOf([3, 4, 2], programAt([3, 4, 2], position))).toBe(position);
    }
  });

  it("of one axis wrap, of several are rows of x", () => {
    expect(gridShape([1_000_000, 1, 1])).toEqual([1_000_000]);
    expect(gridShape([1, 64, 1])).toEqual([64]);
    expect(gridShape([8, 4, 1])).toEqual([4, 8]);
    expect(gridShape([8, 4, 3])).toEqual([12, 8]);
  });
});

describe("numbers", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [3 * 2 ** 20, "3.0 MiB"],
    [2 ** 40, "1.0 TiB"],
  ])("of bytes: %i is %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [0.5, "0.5"],
    [12345, "12,345"],
    [1 / 3, "0.333333"],
    [1.5e-9, "1.5e-9"],
    [2e9 + 0.5, "2e+9"],
    ["nan", "nan"],
    [2 ** 53 - 1, "9,007,199,254,740,991"],
    ["9007199254740993", "9,007,199,254,740,993"],
    ["-9223372036854775808", "-9,223,372,036,854,775,808"],
    ["18446744073709551615", "18,446,744,073,709,551,615"],
    [null, "unknown"],
    [true, "true"],
  ])("of any size: %j is %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  it.each([
    [0, "0"],
    [999, "999"],
    [1500, "1.5k"],
    [3.35e12, "3.35T"],
    [0.25, "0.25"],
  ])("in short: %d is %s", (value, text) => {
    expect(formatShort(value)).toBe(text);
  });

  it("of time and shares", () => {
    expect(formatSeconds(0)).toBe("0 s");
    expect(formatSeconds(0.0123)).toBe("12.3 ms");
    expect(formatSeconds(4e-6)).toBe("4 µs");
    expect(formatShare(0.254)).toBe("25 %");
  });
});
