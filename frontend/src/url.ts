// The address holds what is looked at, so that a link or a bookmark leads back to it.

import type { Program } from "./types";

/** A launch, a program and an op; what is missing is for the page to choose. */
export interface Place {
  launch?: number;
  program?: Program;
  op?: string;
}

/** Reads `#launch=0&program=2,3,0&op=0-110`. What it cannot read it leaves out. */
export function parsePlace(hash: string): Place {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const place: Place = {};
  const launch = fields.get("launch") ?? "";
  if (/^\d{1,15}$/.test(launch)) place.launch = Number(launch);
  const program = fields.get("program") ?? "";
  if (/^\d{1,10}(,\d{1,10}){2}$/.test(program)) place.program = program.split(",").map(Number) as Program;
  const op = fields.get("op");
  if (op) place.op = op;
  return place;
}

/** The opposite of `parsePlace`. */
export function formatPlace(place: Place): string {
  const fields: string[] = [];
  if (place.launch !== undefined) fields.push(`launch=${place.launch}`);
  if (place.program !== undefined) fields.push(`program=${place.program.join(",")}`);
  if (place.op !== undefined) fields.push(`op=${encodeURIComponent(place.op)}`);
  return `#${fields.join("&")}`;
}
