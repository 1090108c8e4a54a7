// Labels as horizontal bars: the most frequent first, each by itself, all of them within reach of a search.

import { count, plusMinus, written } from "./axis.js";
import { button, div, fill, h, p, s, say } from "./dom.js";

const FEW = 25, MORE = 200;
const ORDERS = {
  most: ["most rows first", (one, other) => other.value - one.value],
  least: ["fewest rows first", (one, other) => one.value - other.value],
  name: ["by name", (one, other) => one.name.localeCompare(other.name, undefined, { numeric: true })],
  declared: ["as declared", () => 0],
};
const held = (share) => Math.min(100, Math.max(0, 100 * share));

/** What bars must reach up to; no error may dwarf them. */
export const longest = (items) => Math.max(1e-9, ...items.flatMap(({ value, half, second }) =>
  [value + Math.min(half ?? 0, Math.abs(value)), ...(second ? [second.value] : [])]));

/** A bar with its error, and a mark where another release stands. */
export function bar({ value, half, small, second, ends = [value - half, value + half] }, top) {
  const across = (x) => `${held(x / top).toFixed(2)}%`, [low, high] = ends.map(across);
  return s("svg", { class: "lying", width: "100%", height: 16, "aria-hidden": "true" },
    s("rect", { class: `bar${small ? " small" : ""}`, y: 2, height: 12, width: across(value) }),
    half > 0 && s("g", { class: "whisker" }, s("line", { x1: low, x2: high, y1: 8, y2: 8 }), [low, high].map((x) => s("line", { x1: x, x2: x, y1: 4, y2: 12 }))),
    second && s("rect", { class: "mark", x: across(second.value), y: 0, width: 3, height: 16 }));
}

const number = ({ value, half, said, unit = count }) => said ? [h("strong", said[0]), ` ${said[1]}`] : [h("strong", unit(value)), half === undefined ? "" : ` ${unit === count || half === null ? plusMinus(half) : `± ${unit(half)}`}`];

/** Bars that cannot be chosen: of small pictures and of answers. */
export const still = (items, most = items.length, top = longest(items)) => h("ul", { class: "labels" }, items.slice(0, most).map((item) =>
  h("li", div("row", h("span", { class: "name" }, item.name), bar(item, top), h("span", { class: "number" }, number(item))))));

/** The labels of a column; `changed` hears of those that are chosen. */
export class Labels {
  constructor(items, chosen, changed, single) {
    Object.assign(this, { items, chosen, changed, single, most: FEW, order: "most", searched: "", top: longest(items) });
    this.list = h("ul", { class: "labels" });
    this.more = h("div", { class: "buttons" });
    const find = h("input", { type: "search", oninput: ({ target }) => { this.searched = target.value.trim().toLowerCase(); this.most = FEW; this.draw(); } });
    const order = h("select", { onchange: ({ target }) => { this.order = target.value; this.draw(); } },
      Object.entries(ORDERS).map(([value, [words]]) => h("option", { value }, words)));
    this.element = h("div", items.length > 8 && div("tools", h("label", { class: "pick" }, `Find one of ${written(items.length)} labels`, find), h("label", { class: "pick" }, "Order", order)),
      this.list, this.more);
    this.draw();
  }

  draw() {
    const found = this.items.filter(({ name }) => name.toLowerCase().includes(this.searched)).sort(ORDERS[this.order][1]);
    const first = found.filter(({ name }) => this.chosen.has(name)), shown = found.slice(0, this.most);
    const all = [...shown, ...first.filter((item) => !shown.includes(item))], rest = found.length - all.length;
    fill(this.list, all.map((item) => this.row(item)));
    fill(this.more, rest > 0 && button(`Show ${written(Math.min(rest, MORE))} more of ${written(found.length)}`, () => { this.most += MORE; this.draw(); }),
      !found.length && p("fine", "No label has this in it."));
    if (this.searched) say(`${found.length} labels`);
  }

  row(item) {
    const checked = this.chosen.has(item.name), pale = this.chosen.size > 0 && !checked;
    const onchange = ({ target }) => {
      if (target.checked && this.single) this.chosen.clear();
      if (target.checked) this.chosen.add(item.name); else this.chosen.delete(item.name);
      this.list.querySelectorAll(".row").forEach((row) => row.classList.toggle("pale", this.chosen.size > 0 && !row.querySelector("input").checked));
      if (this.single) this.draw();
      this.changed([...this.chosen]);
    };
    return h("li", h("label", { class: `row${pale ? " pale" : ""}` }, h("input", { type: "checkbox", checked, onchange }),
      h("span", { class: "name" }, item.name), bar(item, this.top), h("span", { class: "number" }, number(item), item.small && h("span", { class: "unseen" }, " noise dominates"),
        item.second && h("span", { class: "second" }, ` ${count(item.second.value)}`))));
  }

  clear() {
    this.chosen.clear();
    this.draw();
    this.changed([]);
  }
}
