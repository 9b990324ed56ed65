// Chooses a program of the grid: by index, by slider, or on a map of all programs.

import { byId, make } from "./dom";
import { countOf } from "./layout";
import { METRICS, programMap } from "./map";
import type { Actions, Panel } from "./panel";
import type { ProgramData } from "./payloads/program_payloads";
import type { Program } from "./types";

const TALLEST = 170;

/** The panel of the grid. */
export function programsPanel(actions: Actions): Panel {
  const root = byId("programs");
  const metric = byId<HTMLSelectElement>("metric");
  const axes = ["x", "y", "z"].map((axis) => ({
    number: byId<HTMLInputElement>(`program-${axis}`),
    slider: byId<HTMLInputElement>(`slide-${axis}`),
  }));
  let data: ProgramData | undefined;
  // The last chosen program, whose data may not have arrived yet.
  let at: Program = [0, 0, 0];
  const go = (program: Program) => {
    at = program;
    actions.chooseProgram(program);
  };
  const map = programMap(
    byId<HTMLCanvasElement>("map"),
    () => [root.clientWidth, TALLEST],
    go,
    (low, high) => {
      byId("map-low").textContent = low;
      byId("map-high").textContent = high;
    },
  );
  metric.replaceChildren(
    ...METRICS.map(([name, words]) => {
      const option = make("option", "", words);
      option.value = name;
      return option;
    }),
  );
  const draw = () => data && root.clientWidth && map.show(data.launch, data.program, metric.value);
  metric.onchange = draw;
  new ResizeObserver(draw).observe(root);
  for (const [position, { number, slider }] of axes.entries()) {
    const choose = (text: string) => {
      if (!data) return;
      const wanted = [...at] as Program;
      const largest = (data.launch.grid[position] ?? 1) - 1;
      wanted[position] = Math.min(Math.max(Math.trunc(Number(text)) || 0, 0), largest);
      go(wanted);
    };
    number.onchange = () => choose(number.value);
    slider.oninput = () => choose(slider.value);
  }
  return {
    show(fresh) {
      [data, at] = [fresh, fresh.program];
      const { grid } = data.launch;
      byId("grid").textContent = `${grid.join(" × ")} = ${countOf(grid).toLocaleString("en")}`;
      axes.forEach(({ number, slider }, axis) => {
        for (const input of [number, slider]) {
          input.max = String((grid[axis] ?? 1) - 1);
          input.value = String(fresh.program[axis]);
        }
        (number.parentElement as HTMLElement).hidden = grid[axis] === 1 && axis > 0;
        slider.disabled = number.disabled = grid[axis] === 1;
      });
      draw();
    },
  };
}
