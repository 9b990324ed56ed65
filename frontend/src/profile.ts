// The profile of a launch: its traffic, and with the profiler also lines, tensors, a roofline and suggested changes.

import { api } from "./api";
import { byId, empty, make, plural, table } from "./dom";
import { formatBytes, formatSeconds, formatShare, formatShort } from "./format";
import { METRICS, programMap } from "./map";
import type { Actions } from "./panel";
import type { Traffic } from "./payloads/memory_payloads";
import type { ProgramData } from "./payloads/program_payloads";
import type { ChipReport, KernelReport, Profile } from "./payloads/report_payloads";
import { roofline } from "./roofline";

/** Shows the profile of a launch. */
export async function showProfile(data: ProgramData, actions: Actions) {
  const { launch } = data;
  delete byId("profile-parts").dataset.launch;
  const [{ analysis }, profile] = await Promise.all([api.traffic(launch.id), api.profile(launch.id)]);
  const report = profile.report;
  const facts = report ? summary(report, profile.chip) : profile.chip ? [] : [notProfiled()];
  const heat = heatPanel(data, actions);
  byId("profile-summary").replaceChildren(...facts);
  byId("profile-parts").replaceChildren(
    ...(report ? [roofPanel(profile), findings(report, actions)] : []),
    ...(profile.chip ? chipPanels(profile.chip) : []),
    heat.panel,
    ...(report ? [sites(report, actions), tensors(report)] : []),
    traffic(analysis),
  );
  heat.draw();
  byId("profile-parts").dataset.launch = String(launch.id);
}

function notProfiled(): HTMLElement {
  return empty(
    "This launch was not profiled: only its traffic is known.",
    'Trace it with `@triton_viz.trace(["tracer", "profiler"])` and run it again.',
  );
}

function summary(report: KernelReport, chip: ChipReport | null): HTMLElement[] {
  const { roofline: roof } = report;
  // A chip's busiest engine may give a larger lower bound than its memory and its total arithmetic.
  const closer = chip && chip.seconds > roof.seconds ? chip : null;
  const facts: [string, string][] = [
    ["loaded", formatBytes(report.loaded)],
    ["stored", formatBytes(report.stored)],
    ["arithmetic", `${formatShort(report.flops)} flop`],
    ["intensity", `${formatShort(roof.intensity)} flop/B`],
    [`at best on ${roof.device}`, formatSeconds(closer?.seconds ?? roof.seconds)],
    ["bound by", closer ? `the ${closer.bound} engine` : roof.bound],
    [
      "programs",
      report.ran === report.programs
        ? report.ran.toLocaleString("en")
        : `${report.ran} of ${report.programs}`,
    ],
  ];
  return facts.map(([name, text]) =>
    make("div", "fact", make("span", "muted", name), make("b", "fact-text", text)),
  );
}

function panel(title: string, note: string, ...parts: (Node | string)[]): HTMLElement {
  return make(
    "section",
    "panel",
    make("h2", "", title, make("span", "", note)),
    make("div", "scroll", ...parts),
  );
}

function roofPanel({ report, device }: Profile): HTMLElement {
  if (!report || !device?.bandwidth || !device.flops)
    return panel("Roofline", "", "The device is not known.");
  const { intensity, attainable, bound } = report.roofline;
  const picture = roofline({ intensity, attainable, flops: device.flops, bandwidth: device.bandwidth });
  return panel("Roofline", `${device.name}; this kernel is bound by ${bound}`, picture);
}

function findings(report: KernelReport, actions: Actions): HTMLElement {
  const cards = report.findings.map((finding) => {
    const head = make("div", "card-head", make("span", "kind", finding.kind));
    head.append(
      make(
        "span",
        "muted",
        `${finding.line ? `line ${finding.line}, ` : ""}about ${formatShare(finding.cost)} of the time`,
      ),
    );
    const button = make("button", "issue", head, make("p", "", finding.message));
    button.append(make("p", "suggestion", "Try: ", finding.change));
    button.onclick = () => actions.goTo({ line: finding.line });
    return button;
  });
  const nothing = make("p", "muted", "The profiler suggests no changes.");
  return panel("Suggested changes", plural(cards.length, "finding"), ...(cards.length ? cards : [nothing]));
}

/** The heat map of all programs. It can be drawn once it is in the document. */
function heatPanel(data: ProgramData, actions: Actions): { panel: HTMLElement; draw: () => void } {
  const metric = make("select");
  metric.id = "heat-metric";
  metric.setAttribute("aria-label", "Colour the heat map by");
  metric.append(
    ...METRICS.map(([name, words]) => {
      const option = make("option", "", words);
      option.value = name;
      return option;
    }),
  );
  const canvas = make("canvas");
  canvas.id = "heat";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Heat map of all programs; click chooses one");
  const [low, high] = [make("span"), make("span")];
  const scale = make("div", "scale", low, make("i", "ramp-bar"), high);
  const part = panel("Heat map", "of all programs", make("div", "tools", metric, scale), canvas);
  const map = programMap(
    canvas,
    () => [Math.max(100, (canvas.parentElement?.clientWidth ?? 300) - 4), 260],
    (program) => actions.goTo({ program }),
    (least, most) => {
      low.textContent = least;
      high.textContent = most;
    },
  );
  const draw = () => map.show(data.launch, data.program, metric.value);
  metric.onchange = draw;
  return { panel: part, draw };
}

function sites(report: KernelReport, actions: Actions): HTMLElement {
  const rows = report.sites.map((site) => [
    String(site.site[0]?.line ?? ""),
    site.kind,
    site.tensor,
    site.block.join("×") || "1",
    formatBytes(site.bytes),
    formatShare(site.mask_waste),
    site.sectors_per_request.toFixed(1),
    formatShare(site.coalescing),
    `${site.repeats_across.toFixed(1)}×`,
  ]);
  const go = report.sites.map((site) => () => actions.goTo({ line: site.site[0]?.line }));
  const titles = [
    "line",
    "access",
    "tensor",
    "block",
    "bytes",
    "masked",
    "sectors/request",
    "coalescing",
    "reuse",
  ];
  return panel("Lines", "click goes to the line", table(titles, rows, go));
}

function tensors(report: KernelReport): HTMLElement {
  const rows = report.tensors.map((tensor) => [
    tensor.tensor,
    tensor.shape.join(" × ") || "scalar",
    tensor.dtype,
    formatBytes(tensor.loaded),
    formatBytes(tensor.stored + tensor.atomics),
    formatBytes(tensor.distinct_loaded),
    `${tensor.repeats_across.toFixed(1)}×`,
  ]);
  const titles = ["tensor", "shape", "type", "loaded", "written", "distinct loaded", "programs per element"];
  return panel("Tensors", "", table(titles, rows));
}

/** The work of each engine and each memory of a chip. */
function chipPanels(chip: ChipReport): HTMLElement[] {
  const engines = chip.engines.map((work) => [
    work.engine,
    work.instructions.toLocaleString("en"),
    make("span", "occupancy", meter(work.occupancy), make("span", "", formatShare(work.occupancy))),
    formatSeconds(work.seconds),
    formatShort(work.flops),
  ]);
  const note = `${chip.target}, bound by the ${chip.bound} engine: about ${formatSeconds(chip.seconds)} at best`;
  const memories = chip.memories.map((memory) => [
    memory.memory,
    formatBytes(memory.read),
    formatBytes(memory.written),
    memory.capacity ? formatBytes(memory.peak) : "–",
    memory.capacity ? formatBytes(memory.capacity) : "–",
    memory.capacity ? formatShare(memory.peak / memory.capacity) : "–",
  ]);
  const moves = chip.moves.map((move) => [`${move.source} → ${move.destination}`, formatBytes(move.bytes)]);
  const intensity = `${formatShort(chip.intensity)} flop per byte to or from HBM`;
  const parts = [
    panel("Engines", note, table(["engine", "instructions", "busy", "time", "flop"], engines)),
    panel(
      "Memories",
      intensity,
      table(["memory", "read", "written", "peak", "capacity", "full"], memories),
      table(["moved", "bytes"], moves),
    ),
  ];
  for (const part of parts) part.classList.add("of-chip");
  return parts;
}

function meter(share: number): HTMLElement {
  const bar = make("i", "meter");
  bar.style.setProperty("--share", String(share));
  return bar;
}

function traffic(rows: Traffic[]): HTMLElement {
  const cells = rows.map((row) => {
    const counts = [row.ops, row.elements, row.masked].map((count) => count.toLocaleString("en"));
    return [row.type, row.tensor || "no tensor", ...counts, formatBytes(row.bytes)];
  });
  const found = table(["type", "tensor", "ops", "elements", "masked", "bytes"], cells);
  found.querySelector("tbody")?.setAttribute("id", "traffic");
  return panel("Traffic", "of all programs", found);
}
