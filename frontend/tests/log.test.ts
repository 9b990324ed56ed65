// The instruction log as the page fetches it: whole lines, each of them once.

import { describe, expect, it } from "vitest";
import { InstructionLog } from "../src/cluster/log";
import type { TapeSlice } from "../src/payloads/server_payloads";

/** A server's log, and how often it was asked. */
function served(text: string) {
  const server = {
    text,
    asked: [] as (number | undefined)[],
    slice: async (start?: number): Promise<TapeSlice> => {
      server.asked.push(start);
      const rest = server.text.slice(start ?? 0);
      const size = server.text.length;
      return { name: "gt.log", text: rest, start: start ?? 0, end: size, size, live: false };
    },
  };
  return server;
}

describe("the instruction log", () => {
  it("appends what was written since", async () => {
    const server = served("one\n");
    const log = new InstructionLog(server.slice);
    expect(await log.fetchMore()).toBe(true);
    expect(await log.fetchMore()).toBe(false);
    server.text += "two\n";
    expect(await log.fetchMore()).toBe(true);
    expect([log.name, log.text, log.cut]).toEqual(["gt.log", "one\ntwo\n", false]);
    expect(server.asked).toEqual([undefined, 4, 4]);
  });

  it("asks once for two calls at a time", async () => {
    const server = served("one\n");
    const log = new InstructionLog(server.slice);
    const both = [log.fetchMore(), log.fetchMore()];
    expect(log.fetching).toBe(true);
    await Promise.all(both);
    expect([log.text, log.fetching, server.asked.length]).toEqual(["one\n", false, 1]);
  });

  it("begins anew with a log that became shorter", async () => {
    const server = served("one\ntwo\n");
    const log = new InstructionLog(server.slice);
    await log.fetchMore();
    server.text = "new\n";
    await log.fetchMore();
    expect(log.text).toBe("new\n");
  });

  it("says that the beginning is missing", async () => {
    const log = new InstructionLog(async () => {
      return { name: "gt.log", text: "two\n", start: 4, end: 8, size: 8, live: true };
    });
    await log.fetchMore();
    expect([log.cut, log.live]).toEqual([true, true]);
  });

  it("can be asked again after an error", async () => {
    const server = served("one\n");
    let fails = true;
    const log = new InstructionLog((start) => {
      if (fails) throw new Error("gone");
      return server.slice(start);
    });
    await expect(log.fetchMore()).rejects.toThrow("gone");
    fails = false;
    expect(await log.fetchMore()).toBe(true);
  });
});
