// Helpers that build elements. Text is always set as text, never as HTML.

/** The element of index.html with this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** A new element with a class, and children inside. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A new SVG element with attributes, and children inside. */
export function svg(
  tag: string,
  attributes: Record<string, string | number>,
  ...children: (Node | string)[]
) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A table: its columns' titles, and rows of texts or elements. A row with an action can be clicked. */
export function table(
  titles: string[],
  rows: (Node | string)[][],
  actions: (() => void)[] = [],
): HTMLElement {
  const head = make("tr", "", ...titles.map((title) => make("th", "", title)));
  const body = rows.map((cells, number) => {
    const row = make("tr", "", ...cells.map((cell) => make("td", "", cell)));
    const action = actions[number];
    if (action) {
      row.tabIndex = 0;
      row.className = "link";
      row.onclick = action;
      row.onkeydown = (event) => {
        if (event.key === "Enter") action();
      };
    }
    return row;
  });
  return make("table", "", make("thead", "", head), make("tbody", "", ...body));
}

/** A placeholder for an empty view: the reason, and the next step, with code in backquotes. */
export function empty(why: string, next: string): HTMLElement {
  const [before, code, after] = next.split("`");
  return make(
    "div",
    "empty",
    make("p", "", why),
    make("p", "", before ?? "", make("code", "next-step", code ?? ""), after ?? ""),
  );
}

/** Scrolls a list, and none of its ancestors, until one of its rows is in view. */
export function reveal(list: HTMLElement, row: HTMLElement) {
  const [outer, inner] = [list.getBoundingClientRect(), row.getBoundingClientRect()];
  if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
  if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
}

/** `1 element`, `2 elements`, `1,024 elements`. */
export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}
