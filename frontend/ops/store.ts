// Store: elements written to a tensor.

import { accessRenderer } from "./access";

/** Shows a store. */
export const store = accessRenderer("--store", "writes", "to");
