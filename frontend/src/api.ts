// The server's two endpoints. Nothing is kept here: what is looked at is fetched.

import type { Launch, Program, ProgramData } from "./types";

/** Why there is no data. `gone` is true when no server answered at all. */
export class ApiError extends Error {
  readonly gone: boolean;

  constructor(message: string, gone: boolean) {
    super(message);
    this.gone = gone;
  }
}

/** All launches, oldest first. */
export async function fetchLaunches(): Promise<Launch[]> {
  return (await get<{ launches: Launch[] }>("api/launches")).launches;
}

/** One program of one launch. */
export async function fetchProgram(launch: number, program: Program): Promise<ProgramData> {
  return get<ProgramData>(`api/data?launch=${launch}&program=${program.join(",")}`);
}

async function get<T>(path: string): Promise<T> {
  let response: Response;
  let body: T & { error?: string };
  try {
    // A launch's data changes when its kernel runs again, so no answer is reused.
    response = await fetch(path, { cache: "no-store" });
    body = await response.json();
  } catch {
    throw new ApiError("The program that served this page does not answer any more.", true);
  }
  if (!response.ok) throw new ApiError(body.error ?? `The server answered ${response.status}.`, false);
  return body;
}
