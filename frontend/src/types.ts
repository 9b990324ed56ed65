// Short names for what the server sends; the fields are in payloads/, which is generated.

import type { AccessPayload, DotPayload, OpPayload, TensorPayload } from "./payloads/program_payloads";
import type { LaunchSummary } from "./payloads/server_payloads";

/** The index of a program in a grid, or a grid's sizes: along x, y and z. */
export type Program = [number, number, number];
export type Launch = LaunchSummary;
export type Tensor = TensorPayload;
export type Access = AccessPayload;
export type Dot = DotPayload;

/** Any op. Renderers know the additional fields of their types. */
export type Op = OpPayload;
