// Colours: the colour names of style.css as numbers, and ramps between colours.

/** Red, green and blue, from 0 to 255. */
export type Rgb = [number, number, number];

const probe = typeof document === "undefined" ? undefined : document.createElement("i");

/** The colour of a name in style.css, in the current scheme. */
export function colour(name: string): string {
  if (!probe) return "";
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** The colour of a name in style.css, as numbers. */
export function rgb(name: string): Rgb {
  return parseRgb(colour(name));
}

/** Reads `rgb(1, 2, 3)`, as browsers write computed colours. */
export function parseRgb(text: string): Rgb {
  const [red = 0, green = 0, blue = 0] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue];
}

/** A colour interpolated between others: at 0 the first, at 1 the last. */
export function mix(stops: Rgb[], at: number): Rgb {
  const position = Math.min(1, Math.max(0, at)) * (stops.length - 1);
  const low = Math.min(Math.floor(position), stops.length - 2);
  const [from, to] = [stops[Math.max(0, low)] ?? [0, 0, 0], stops[low + 1] ?? [0, 0, 0]];
  return from.map((part, i) => Math.round(part + ((to[i] ?? 0) - part) * (position - low))) as Rgb;
}

/** The ramp that numbers are coloured by, from low to high. */
export function ramp(): Rgb[] {
  return ["--ramp-0", "--ramp-1", "--ramp-2", "--ramp-3"].map(rgb);
}

/** The position of a number between two limits, from 0 to 1. Equal limits give a strong colour. */
export function share(number: number, low: number, high: number): number {
  return high > low ? (number - low) / (high - low) : 0.75;
}

/** Calls back when the scheme changes between light and dark. */
export function onScheme(paint: () => void) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  document.addEventListener("scheme", paint);
}
