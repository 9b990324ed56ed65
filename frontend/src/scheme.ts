// Light or dark: the system's choice, unless the user chooses.

import { byId } from "./dom";

const KEY = "triton-viz scheme";
const ORDER = ["auto", "light", "dark"] as const;
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

/** Lets the button in the header choose the scheme, and stores the choice in the browser. */
export function listenScheme() {
  let chosen: (typeof ORDER)[number] = ORDER.find((name) => name === recall()) ?? "auto";
  const apply = () => {
    document.documentElement.dataset.scheme = chosen;
    const button = byId("scheme");
    button.textContent = SIGNS[chosen];
    button.title = `Colours: ${chosen}`;
    button.setAttribute("aria-label", button.title);
    document.dispatchEvent(new Event("scheme"));
  };
  byId("scheme").onclick = () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length] ?? "auto";
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // A browser may forbid storage: then the choice lasts until the page is closed.
    }
    apply();
  };
  apply();
}

function recall(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
