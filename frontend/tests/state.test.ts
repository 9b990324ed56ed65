// The state of the page, and which listeners a change calls.

import { describe, expect, it } from "vitest";
import { Store } from "../src/state";

describe("the store", () => {
  it("tells those that listen to a field, after all of a change is made", () => {
    const store = new Store({ launch: 1, op: "a", view: "kernel" });
    const heard: string[] = [];
    store.on("op", ({ launch, op }) => heard.push(`op ${op} of ${launch}`));
    store.on("view", ({ view }) => heard.push(view));
    store.set({ launch: 2, op: "b" });
    expect(heard).toEqual(["op b of 2"]);
    store.set({ view: "issues" });
    expect(heard).toEqual(["op b of 2", "issues"]);
  });

  it("tells of a field that is set to what it was: what is drawn from it may have changed", () => {
    const store = new Store<{ op: string | undefined }>({ op: undefined });
    let calls = 0;
    store.on("op", () => calls++);
    store.set({ op: undefined });
    expect(calls).toBe(1);
  });

  it("calls a listener of several fields once for a change of all of them", () => {
    const store = new Store({ from: 0, to: 1, selected: "" });
    const heard: string[] = [];
    store.on(["from", "to"], ({ from, to }) => heard.push(`${from} to ${to}`));
    store.set({ from: 2, to: 3 });
    store.set({ to: 4 });
    store.set({ selected: "matmul" });
    expect(heard).toEqual(["2 to 3", "2 to 4"]);
  });

  it("leaves a state that was taken before as it was", () => {
    const store = new Store({ op: "a" });
    const before = store.state;
    store.set({ op: "b" });
    expect([before.op, store.state.op]).toEqual(["a", "b"]);
  });
});
