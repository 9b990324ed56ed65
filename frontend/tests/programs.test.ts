// Programs in order, and bytes in words.

import { describe, expect, it } from "vitest";
import { positionOf, programAt } from "../src/programs";
import { formatBytes } from "../src/traffic";

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
});

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [3 * 2 ** 20, "3.0 MiB"],
    [2 ** 40, "1.0 TiB"],
  ])("writes %i as %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});
