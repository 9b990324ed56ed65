// Load: elements read from a tensor.

import { accessRenderer } from "./access";

/** Shows a load. */
export const load = accessRenderer("--load", "reads", "of");
