// The keyboard: one table of keys. The dialog that `?` opens lists the same ones, in index.html.

/** Calls the action of each key that is pressed, except in controls that use the key themselves. */
export function listenKeys(actions: Record<string, () => void>) {
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      target.closest("input:not([type=range]), select, dialog")
    )
      return;
    // The space bar presses a focused button.
    if (event.key === " " && target.closest("button")) return;
    if (event.key.startsWith("Arrow") && target.closest("input")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
