// Programs whose ops come in several answers.

import { describe, expect, it } from "vitest";
import { pager } from "../src/paging";
import type { ProgramData } from "../src/payloads/program_payloads";

const TOTAL = 10;
const AT_ONCE = 4;

/** The answer that begins with an op: its ops, and a path for each of its own. */
function answer(first: number): ProgramData {
  const numbers = Array.from({ length: Math.min(AT_ONCE, TOTAL - first) }, (_, i) => first + i);
  return {
    total: TOTAL,
    paths: numbers.map((n) => [{ file: `${n}.py` }]),
    visualization_data: numbers.map((n, path) => ({ uuid: String(n), path })),
  } as unknown as ProgramData;
}

/** A server that answers when it is told to, and writes down what it was asked for. */
function server() {
  const asked: number[] = [];
  const waiting: (() => void)[] = [];
  const failures: Error[] = [];
  const more = pager((_, first) => {
    asked.push(first);
    return new Promise((resolve, reject) => {
      waiting.push(() => {
        const failure = failures.shift();
        failure ? reject(failure) : resolve(answer(first));
      });
    });
  });
  const release = () => {
    for (const go of waiting.splice(0)) go();
  };
  return { asked, failures, more, release };
}

const uuids = (data: ProgramData) => data.visualization_data.map((op) => op.uuid);
const range = (end: number) => Array.from({ length: end }, (_, i) => String(i));

describe("the next ops of a program", () => {
  it("are fetched once, however often they are asked for meanwhile", async () => {
    const { asked, more, release } = server();
    const data = answer(0);
    const repeats = [more(data), more(data), more(data)];
    release();
    expect(await Promise.all(repeats)).toEqual([true, true, true]);
    expect(asked).toEqual([4]);
    expect(uuids(data)).toEqual(range(8));
  });

  it("come one answer after the other, until there are no more", async () => {
    const { asked, more, release } = server();
    const data = answer(0);
    for (const expected of [true, true, false]) {
      const [one, other] = [more(data), more(data)];
      release();
      expect([await one, await other]).toEqual([expected, expected]);
    }
    expect(asked).toEqual([4, 8]);
    expect(uuids(data)).toEqual(range(TOTAL));
    for (const op of data.visualization_data)
      expect(data.paths[op.path]).toEqual([{ file: `${op.uuid}.py` }]);
  });

  it("are asked for again after a failure", async () => {
    const { asked, failures, more, release } = server();
    const data = answer(0);
    failures.push(new Error("gone"));
    const [one, other] = [more(data), more(data)];
    release();
    await expect(one).rejects.toThrow("gone");
    await expect(other).rejects.toThrow("gone");
    const again = more(data);
    release();
    expect(await again).toBe(true);
    expect(asked).toEqual([4, 4]);
    expect(uuids(data)).toEqual(range(8));
  });

  it("of two programs are fetched side by side", async () => {
    const { asked, more, release } = server();
    const [first, second] = [answer(0), answer(0)];
    const both = [more(first), more(second)];
    release();
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(asked).toEqual([4, 4]);
    expect(uuids(first)).toEqual(uuids(second));
  });
});
