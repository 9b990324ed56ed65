// Short names for what the server sends; the fields are in payloads.ts, which is generated.

import type { AccessPayload, DotPayload, LaunchSummary, OpPayload, TensorPayload } from "./payloads";

/** Which program of a grid, or a grid's size: along x, y and z. */
export type Program = [number, number, number];
export type Launch = LaunchSummary;
export type Tensor = TensorPayload;
export type Access = AccessPayload;
export type Dot = DotPayload;

/** Any op. What a type has beyond this, its renderer knows. */
export type Op = OpPayload;
