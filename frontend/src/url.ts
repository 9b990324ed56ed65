// The address names what the page shows, so that a link or a bookmark leads back to it.

import type { Focus } from "./panel";
import type { Program } from "./types";

export const VIEWS = ["kernel", "profile", "issues", "cluster"] as const;
export type ViewName = (typeof VIEWS)[number];

/** A view, a launch, a program, an op and an element; each may be missing, and has a default then. */
export interface Place {
  view?: ViewName;
  launch?: number;
  program?: Program;
  op?: string;
  focus?: Focus;
}

/** Parses `#launch=0&program=2,3,0&op=0-1-2.3.0`. Invalid parts are left out. */
export function parsePlace(hash: string): Place {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const place: Place = {};
  const view = VIEWS.find((name) => name === fields.get("view"));
  if (view) place.view = view;
  const launch = fields.get("launch") ?? "";
  if (/^\d{1,15}$/.test(launch)) place.launch = Number(launch);
  const program = fields.get("program") ?? "";
  if (/^\d{1,10}(,\d{1,10}){2}$/.test(program)) place.program = program.split(",").map(Number) as Program;
  const op = fields.get("op");
  if (op) place.op = op;
  const focus = /^(.+):(\d{1,15})$/.exec(fields.get("element") ?? "");
  if (focus) place.focus = { tensor: focus[1] as string, element: Number(focus[2]) };
  return place;
}

/** The opposite of `parsePlace`. */
export function formatPlace(place: Place): string {
  const fields: string[] = [];
  if (place.view && place.view !== "kernel") fields.push(`view=${place.view}`);
  if (place.launch !== undefined) fields.push(`launch=${place.launch}`);
  if (place.program !== undefined) fields.push(`program=${place.program.join(",")}`);
  if (place.op !== undefined) fields.push(`op=${encodeURIComponent(place.op)}`);
  if (place.focus) fields.push(`element=${encodeURIComponent(place.focus.tensor)}:${place.focus.element}`);
  return `#${fields.join("&")}`;
}
