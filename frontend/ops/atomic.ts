// Atomic: elements read, changed and written in one step.

import { accessRenderer } from "./access";

/** Shows an atomic. */
export const atomic = accessRenderer("--atomic", "changes", "of");
