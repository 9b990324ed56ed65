// Placeholder.
/** Shows the tape. */
export async function showCluster(_hasTape: boolean) {}
