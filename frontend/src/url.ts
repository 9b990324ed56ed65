// The route in the page's address, so that links and bookmarks lead to the same view.

import type { Focus } from "./panel";
import type { Program } from "./types";

export const VIEWS = ["kernel", "profile", "issues", "cluster"] as const;
export type ViewName = (typeof VIEWS)[number];

/** A view, a launch, a program, an op and an element. All are optional and have defaults. */
export interface Route {
  view?: ViewName;
  launch?: number;
  program?: Program;
  op?: string;
  focus?: Focus;
}

/** Parses `#launch=0&program=2,3,0&op=0-1-2.3.0`. Invalid parts are left out. */
export function parseRoute(hash: string): Route {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const route: Route = {};
  const view = VIEWS.find((name) => name === fields.get("view"));
  if (view) route.view = view;
  const launch = fields.get("launch") ?? "";
  if (/^\d{1,15}$/.test(launch)) route.launch = Number(launch);
  const program = fields.get("program") ?? "";
  if (/^\d{1,10}(,\d{1,10}){2}$/.test(program)) route.program = program.split(",").map(Number) as Program;
  const op = fields.get("op");
  if (op) route.op = op;
  const focus = /^(.+):(\d{1,15})$/.exec(fields.get("element") ?? "");
  if (focus) route.focus = { tensor: focus[1] as string, element: Number(focus[2]) };
  return route;
}

/** The opposite of `parseRoute`. */
export function formatRoute(route: Route): string {
  const fields: string[] = [];
  if (route.view && route.view !== "kernel") fields.push(`view=${route.view}`);
  if (route.launch !== undefined) fields.push(`launch=${route.launch}`);
  if (route.program !== undefined) fields.push(`program=${route.program.join(",")}`);
  if (route.op !== undefined) fields.push(`op=${encodeURIComponent(route.op)}`);
  if (route.focus) fields.push(`element=${encodeURIComponent(route.focus.tensor)}:${route.focus.element}`);
  return `#${fields.join("&")}`;
}
