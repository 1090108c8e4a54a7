// One column of a release, or two: picture, selection, count. The address holds all of it.

import { address, download, get } from "./api.js";
import { Axis, count, percent, plusMinus } from "./axis.js";
import { Brush } from "./brush.js";
import { button, div, facts, fill, fitted, h, here, p, s, say, section, settled, show, snippet, table } from "./dom.js";
import { frames, heat, legend } from "./heat.js";
import { Frame, along, bars, binned, ceiling, cumulative, grid } from "./plot.js";
import { evidence } from "./words.js";

const FROM = ["from", "y_from"], TO = ["to", "y_to"], ENDS = ["from", "to"];
const SHARES = { 0.25: "A quarter", 0.5: "Half", 0.75: "Three quarters" };

export const view = async (name) => new View(name, await get(`/releases/${name}.json`)).open();

class View {
  constructor(name, about) {
    this.state = { x: about.columns[0]?.name, ...Object.fromEntries(new URLSearchParams(location.search)) };
    const names = [this.state.x, this.state.y].filter(Boolean);
    Object.assign(this, { name, about, names, title: names.join(" and "), base: `/releases/${name}`, marked: true });
    this.settle = settled(() => this.refresh(), 250);
    addEventListener("themed", () => this.paint());
  }

  get confidence() { return Number(this.state.confidence ?? 0.95); }

  async open() {
    const { state, about: { columns } } = this, seen = await get(`${this.base}/view.json`, state), { ranges } = seen.selection;
    const axes = this.names.map((wanted, side) => new Axis(columns.find(({ name }) => name === wanted), state[FROM[side]], state[TO[side]]));
    this.ranges = Object.keys(ranges).length ? axes.map((axis) => cells(axis, ranges[axis.name])) : null;
    Object.assign(this, { seen, axes, bins: axes.map((axis, side) => binned(axis, seen.axes[side])) });
    [this.figure, this.note, this.count, this.panel, this.below] = ["figure", null, "count", null, null].map((name) => div(name));
    show(h("h1", this.title), this.tools(),
      div("split", h("div", this.figure, this.note), h("div", this.count, this.panel)), this.below);
    fitted(this.figure, (width) => this.draw(width));
    this.fillAll();
  }

  /** Another view; the back button leaves it again. */
  go(changes) {
    history.pushState(null, "", address(`${this.base}/view`, { ...this.state, ...changes }));
    dispatchEvent(new Event("popstate"));
  }

  async refresh() {
    const asked = address("", this.state), seen = await get(`${this.base}/view.json`, this.state);
    if (asked !== address("", this.state) || !this.below.isConnected) return;
    this.seen = seen;
    this.fillAll();
    this.paint();
  }

  fillAll() {
    const query = address("", this.state), { snippets: { python, curl, text }, cdf, quantiles, selection } = this.seen;
    history.replaceState(null, "", `${this.base}/view${query}`);
    here([[this.name, this.base], [this.title, location.href]], `${this.base}/view.json${query}`);
    this.fillCount(selection.count);
    this.fillPanel();
    fill(this.below, cdf && !this.axes[0].category && this.shares(cdf, quantiles),
      section("Ask it yourself", snippet("Python", python), snippet("curl", curl), snippet("Query", text)),
      section("What is seen", this.rows(this.below.querySelector("details")?.open),
        download("Download as CSV", `${this.base}/view.csv${query}`, `${[this.name, ...this.names].join("-")}.csv`)));
  }

  tools() {
    const { about: { columns, views }, state: { x, y }, seen: { filter } } = this, all = columns.map(({ name }) => name);
    const partners = all.filter((name) => name !== x && views.some(({ columns: held }) => held.includes(name) && held.includes(x)));
    const fresh = { from: "", to: "", y_from: "", y_to: "", where: filter };
    const pick = (words, values, chosen, change, said = String) => h("label", { class: "pick" }, words, h("select", { onchange: ({ target }) => this.go(change(target.value)) },
      values.map((value) => h("option", { value, selected: value === chosen }, said(value) || "nothing"))));
    return div("tools", pick("Column", all, x, (value) => ({ ...fresh, x: value, y: "" })),
      partners.length > 0 && pick("together with", ["", ...partners], y, (value) => ({ ...fresh, y: value })),
      pick("Confidence", [0.8, 0.9, 0.95, 0.99], this.confidence, (confidence) => ({ confidence }), percent),
      h("label", { class: "pick wide" }, "Only rows where", h("input", { value: filter,
        onchange: ({ target }) => this.go({ where: this.where(target.value.trim()) }) })));
  }

  /** The filter and the selection as conditions. */
  where(filter = this.seen.filter) {
    const said = ([low, high], side) => (low > 0 || high < this.axes[side].size - 1) && this.axes[side].said([low, high]);
    return [filter, ...(this.ranges ?? []).map(said)].filter(Boolean).join(" and ");
  }

  draw(width) {
    this.frames = this.axes[1] ? frames(width) : { main: new Frame(width, width < 560 ? 260 : 340) };
    this.brush = new Brush(this.frames.main, this.axes, this.ranges, (ranges, done) => this.moved(ranges, done));
    [this.under, this.readout] = [s("g"), p("fine readout")];
    const picture = this.frames.main.svg(`Counts by ${this.title}`, this.under, this.brush.element);
    picture.onpointermove = (event) => this.point(event);
    fill(this.figure, picture, this.readout);
    this.paint();
  }

  /** What lies under the brush. */
  paint() {
    const { seen, axes: [x, y], ranges, frames: { main } = {} } = this, small = seen.small.flat(), noisy = small.filter(Boolean).length;
    if (!main) return;
    fill(this.under, y ? heat(this.frames, this.axes, seen, ranges)
      : [grid(main, 0, ceiling(seen)), bars(main, x, this.bins[0], seen, ranges?.[0]), along(main, x)]);
    fill(this.note, evidence(seen.basis), y && legend(seen), noisy > 0 && p("fine",
      `In ${count(noisy)} of ${count(small.length)} ${y ? "fields" : "bins (grey)"} the noise is as large as the count.`));
  }

  /** A bin, or a field of the map, in words. */
  field(places) {
    const { axes, bins, seen: { values, half, small } } = this, at = (matrix) => places.reduce((inner, place) => inner[place], matrix);
    return [...axes.map((axis, side) => axis.span(bins[side][places[side]])), count(at(values)), plusMinus(at(half)), at(small) ? "noise dominates" : ""];
  }

  point(event) {
    const { cells: at } = this.brush.under(event), places = this.bins.map((bins, side) => bins.findIndex(([, high]) => at[side] <= high));
    this.readout.textContent = `${this.title}: ${this.field(places).join(" · ")}`;
  }

  moved(ranges, done) {
    this.ranges = ranges;
    this.state.where = this.where();
    if (!this.axes[1]) this.paint();
    this.fillPanel();
    this.ask();
    if (done) this.settle();
  }

  /** The count while the selection moves: one question at a time, the last one stands. */
  async ask() {
    this.count.classList.add("stale");
    this.waiting = true;
    if (this.asking) return;
    for (this.asking = true; this.waiting;) {
      this.waiting = false;
      const answer = await get(`${this.base}/count`, { where: this.state.where, confidence: this.confidence }).catch(() => null);
      if (answer && !this.waiting) this.fillCount(answer);
    }
    this.asking = false;
  }

  fillCount({ value, half, interval: { low, high }, small, basis }) {
    this.count.classList.remove("stale");
    fill(this.count, h("h2", this.ranges ? "Rows in the selection" : "All rows"), p("big", h("strong", count(value)), plusMinus(half)),
      h("p", `Between ${count(Math.floor(low))} and ${count(Math.ceil(high))} with ${percent(this.confidence)} confidence.`),
      small && p("warn", "Noise dominates: the error is as large as the count."), evidence(basis));
    say(`${count(value)} rows, ${plusMinus(half).replace("±", "plus or minus")}${small ? ", noise dominates" : ""}`);
  }

  fillPanel() {
    const { axes, ranges, panel, seen: { specials } } = this, focused = document.activeElement.name;
    fill(panel, axes.map((axis, side) => this.ends(axis, side)), div("buttons",
      ranges && [button("Clear", () => this.brush.set(null, true)), button("Zoom in", () => this.zoom(ranges))],
      axes.some((axis) => axis.cells < axis.size) && button("Whole axis", () => this.zoom())),
    specials && div("specials", h("h2", "Not on the axis"), facts(specials.map(({ name, value, half }) => [name, `${count(value)} ${plusMinus(half)}`]))));
    if (focused) panel.querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
  }

  zoom(ranges) {
    const window = this.axes.flatMap((axis, side) => [[FROM[side], ranges && axis.text(ranges[side][0])], [TO[side], ranges && axis.text(ranges[side][1])]]);
    this.go({ ...Object.fromEntries(window), where: ranges ? this.seen.filter : this.where() });
  }

  /** Fields for the exact ends of a range. */
  ends(axis, side) {
    const { name, kind, column: { labels } } = axis;
    const typed = (end, cell) => (Number.isNaN(cell) ? this.fillPanel() : this.brush.set(this.brush.ended(side, end, axis.clamp(cell)), true));
    return h("fieldset", { class: "ends" }, h("legend", name), (this.ranges?.[side] ?? [axis.first, axis.last]).map((cell, end) => {
      const common = { name: `${name}-${end}`, "aria-label": `${name}, exactly ${ENDS[end]}`, onchange: ({ target }) => typed(end, axis.cell(target.value)) };
      return labels ? h("select", common, labels.map((value, place) => h("option", { value, selected: place === cell }, value)))
        : h("input", { ...common, type: kind === "date" ? "date" : "text", value: axis.text(cell) });
    }));
  }

  shares(cdf, quantiles) {
    const picture = div("figure"), [axis] = this.axes, label = (text) => axis.label(axis.cell(text)), quartiles = quantiles.filter(({ q }) => q in SHARES);
    const draw = (width) => {
      const frame = new Frame(width, 210);
      fill(picture, frame.svg(`Shares of ${axis.name}`, cumulative(frame, axis, cdf, this.marked ? quartiles : [])));
    };
    const mark = ({ target }) => { this.marked = target.checked; draw(picture.clientWidth); };
    fitted(picture, draw);
    return section("Share up to each value", picture,
      h("label", h("input", { type: "checkbox", checked: this.marked, onchange: mark }), " Mark the quartiles"),
      h("ul", quartiles.map(({ q, value, low, high }) => h("li", `${SHARES[q]} of the rows: up to `, h("strong", label(value)), ` (${label(low)} to ${label(high)})`))));
  }

  /** The table, made when it is opened. */
  rows(open) {
    const places = this.bins[0].flatMap((_, i) => this.bins[1]?.map((__, j) => [i, j]) ?? [[i]]), head = [...this.names, "rows", "error", "note"];
    const ontoggle = ({ target }) => target.children[1] || target.append(table(`Counts by ${this.title}`, head, places.map((each) => this.field(each))));
    return h("details", { open, ontoggle }, h("summary", "As a table"));
  }
}

/** A range as cells; an open end is the end of the axis. */
const cells = (axis, range) => [range?.low, range?.high].map((text, end) => axis.clamp(text ? axis.cell(text) : [axis.first, axis.last][end]));
