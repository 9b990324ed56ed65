// The address names what is looked at, and survives being written by hand.

import { describe, expect, it } from "vitest";
import { formatPlace, type Place, parsePlace } from "../src/url";

const PLACES: Place[] = [
  {},
  { launch: 0 },
  { launch: 3, program: [2, 3, 0] },
  { launch: 3, program: [0, 0, 0], op: "3-110" },
  { op: "odd & even = 100%" },
  { view: "issues", launch: 1, focus: { tensor: "x:y", element: 12 } },
];

describe("the address", () => {
  it.each(PLACES)("leads back to %j", (place) => {
    expect(parsePlace(formatPlace(place))).toEqual(place);
  });

  it("reads well", () => {
    expect(formatPlace({ launch: 0, program: [2, 3, 0], op: "0-110" })).toBe(
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
    expect(parsePlace(hash)).toEqual({});
  });
});
