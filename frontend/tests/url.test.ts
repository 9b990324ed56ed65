// The address names what is looked at, and survives being written by hand.

import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute, type Route } from "../src/url";

const ROUTES: Route[] = [
  {},
  { launch: 0 },
  { launch: 3, program: [2, 3, 0] },
  { launch: 3, program: [0, 0, 0], op: "3-110" },
  { op: "odd & even = 100%" },
  { view: "issues", launch: 1, focus: { tensor: "x:y", element: 12 } },
];

describe("the address", () => {
  it.each(ROUTES)("leads back to %j", (route) => {
    expect(parseRoute(formatRoute(route))).toEqual(route);
  });

  it("reads well", () => {
    expect(formatRoute({ launch: 0, program: [2, 3, 0], op: "0-110" })).toBe(
      "#launch=0&program=2,3,0&op=0-110",
    );
  });

  it.each([
    "",
    "#",
    "#launch=last",
    "#launch=-1",
    "#program=1,2",
    "#program=1,2,x",
    "#program=1.5,0,0",
    "#op=",
    "#view=nothing",
    "#element=x",
  ])("leaves out what it cannot read in %j", (hash) => {
    expect(parseRoute(hash)).toEqual({});
  });
});
