// Numbers as text.

/** `512 B`, `1.5 KiB`, `3.0 MiB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return `${power ? (bytes / 1024 ** power).toFixed(1) : Math.round(bytes)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** Integers in full, others with seven significant digits at most: `0.5`, `1.234568e-9`, `12,345`. */
export function formatNumber(value: number | string | boolean | null): string {
  if (value === null) return "unknown";
  // Integers that a number cannot hold come as digits.
  if (typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value).toLocaleString("en");
  if (typeof value !== "number") return String(value);
  if (Number.isSafeInteger(value)) return value.toLocaleString("en");
  const small = Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7;
  return small ? value.toExponential(3).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(6)));
}

/** `1.2k`, `3.4M`, `5T`: for axes and narrow labels. */
export function formatShort(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const power = Math.min(5, Math.max(0, Math.floor(Math.log10(Math.abs(value) || 1) / 3)));
  const scaled = value / 1000 ** power;
  const digits = Number.isInteger(scaled) || Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 0.01 ? 2 : 4;
  return `${Number(scaled.toFixed(digits))}${["", "k", "M", "G", "T", "P"][power]}`;
}

/** `12.3 ms`, `4 µs`. */
export function formatSeconds(seconds: number): string {
  if (seconds === 0) return "0 s";
  const units: [number, string][] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [1e-9, "ns"];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

/** `25 %`. */
export function formatShare(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
