// A table of what all programs of the launch moved.

import { byId, make } from "./dom";
import type { Panel } from "./panel";

/** `512 B`, `1.5 KiB`, `3.0 MiB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return `${power ? (bytes / 1024 ** power).toFixed(1) : bytes} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** The panel of the traffic. */
export function trafficPanel(): Panel {
  return {
    show({ analysis }) {
      const rows = analysis.map((row) => {
        const counts = [row.ops, row.elements, row.masked].map((count) => count.toLocaleString("en"));
        const texts = [row.type, row.tensor || "no tensor", ...counts, formatBytes(row.bytes)];
        return make("tr", "", ...texts.map((text) => make("td", "", text)));
      });
      byId("traffic").replaceChildren(...rows);
    },
  };
}
