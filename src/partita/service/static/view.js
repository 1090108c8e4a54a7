// One column of a release, or two: picture, selection, count. The address holds all of it.

import { Refused, address, download, get } from "./api.js";
import { count, percent, plusMinus, word } from "./axis.js";
import { Brush } from "./brush.js";
import { beside, differences } from "./compare.js";
import { conditions } from "./conditions.js";
import { button, div, facts, fill, fitted, h, here, p, s, say, section, settled, show, snippet, table } from "./dom.js";
import { frames, heat, legend } from "./heat.js";
import { link, place, served } from "./place.js";
import { Labels } from "./labels.js";
import { Measures } from "./measures.js";
import { Frame, along, bars, ceiling, cumulative, grid, steps } from "./plot.js";
import { FROM, TO, isMap, items, look } from "./seen.js";
import { multiples } from "./split.js";
import { evidence } from "./words.js";

const ENDS = ["from", "to"], FRESH = { from: "", to: "", y_from: "", y_to: "", range: "", split: "" }, MOST_FIELDS = 32;
const SHARES = { 0.25: "A quarter", 0.5: "Half", 0.75: "Three quarters" };

/** The months of a column of times, as what rows are grouped by. */
const months = (columns, name) => (served && columns.find((each) => each.name === name).start ? [`month(${word(name)})`] : []);

export const view = async (name) => new View(name, await get(`/releases/${name}.json`)).open();

class View {
  constructor(name, about) {
    const state = { x: about.columns[0]?.name, ...Object.fromEntries(new URLSearchParams(place().search)) };
    const many = [state.y, state.x].find((wanted) => about.columns.find((column) => column.name === wanted)?.labels?.length > MOST_FIELDS);
    if (isMap(state.y, state.x)) Object.assign(state, { x: state.y, y: state.x });
    else if (state.y && many) Object.assign(state, { x: many === state.y ? state.x : state.y, y: "", split: many });
    const names = [state.x, state.y].filter(Boolean);
    Object.assign(this, { name, about, state, names, title: names.join(" and "), base: `/releases/${name}`, marked: true });
    this.settle = settled(() => this.refresh(), 250);
    addEventListener("themed", () => this.paint());
  }

  get confidence() { return Number(this.state.confidence ?? 0.95); }
  get columns() { return this.about.columns; }

  async open() {
    await this.lookAgain();
    const { axes, seen: { selection: { ranges, values } } } = this;
    this.labelled = axes.length === 1 && axes[0].category;
    if (this.labelled) this.ranges = this.chosen(axes[0], ranges, values);
    else this.ranges = Object.keys(ranges).length ? axes.map((axis) => cells(axis, ranges[axis.name])) : null;
    this.measures = new Measures(this.base, this.about);
    [this.figure, this.note, this.count, this.panel, this.below, this.groups] = ["figure", null, "count", null, null, null].map((name) => div(name));
    show(h("h1", this.title), await this.tools(),
      div("split", h("div", this.figure, this.note), h("div", this.count, this.panel, this.measures.element)), this.groups, this.below);
    if (this.labelled) this.list();
    else fitted(this.figure, (width) => this.draw(width));
    if (this.state.split) fill(this.groups, multiples(this.base, this.about, { ...this.state, y: "", filter: this.seen.filter, confidence: this.confidence },
      (said) => this.go({ split: "", where: this.where([this.seen.filter, said].filter(Boolean).join(" and ")) })));
    this.fillAll();
  }

  /** What the service shows. A condition that it cannot read is left out, and said beside its field. */
  async lookAgain() {
    const { state } = this;
    try {
      await this.look();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 400 || !state.where) throw error;
      this.complaint = { words: error.message, where: state.where };
      await this.look({ ...state, where: "" });
      this.state.where = "";
    }
    const { ranges } = this.seen.selection;
    if (state.range !== "full" && this.axes.some((axis) => axis.column.window && [ranges[axis.name]?.low, ranges[axis.name]?.high].some((text) => text && outside(axis, text)))) {
      Object.assign(state, { range: "full", from: "", to: "", y_from: "", y_to: "" });
      await this.look();
    }
    this.other = state.with && await beside(state.with, this.about, state, this.axes);
    if (this.other?.alike && String(this.other.bins) !== String(this.bins)) this.other.alike = this.axes[0].category;
  }

  async look(state = this.state) {
    Object.assign(this, await look(this.base, this.columns, { ...state, confidence: this.confidence }));
  }

  /** The labels of a selection: by name, or between two others in the declared order. */
  chosen(axis, ranges, values) {
    const range = ranges[axis.name] && cells(axis, ranges[axis.name]);
    return new Set(values[axis.name] ?? (range ? axis.column.labels.slice(range[0], range[1] + 1) : []));
  }

  /** Another view; the back button leaves it again. */
  go(changes) {
    history.pushState(null, "", link(address(`${this.base}/view`, { ...this.state, ...changes })));
    dispatchEvent(new Event("popstate"));
  }

  async refresh() {
    const asked = address("", this.state);
    const found = await look(this.base, this.columns, { ...this.state, confidence: this.confidence });
    if (asked !== address("", this.state) || !this.below.isConnected) return;
    Object.assign(this, found);
    this.fillAll();
    this.paint();
  }

  fillAll() {
    const query = address("", this.state), { snippets: { python, curl, text }, cdf, quantiles, selection } = this.seen, data = address("", this.asked);
    history.replaceState(null, "", link(`${this.base}/view${query}`));
    here([[this.name, this.base], [this.title, `${this.base}/view${query}`]], `${this.base}/view.json${data}`);
    this.fillCount(selection.count);
    this.fillPanel();
    this.measures.show(this.state.where, this.confidence);
    const frame = `<iframe src="${location.origin}${this.base}/embed${address("", { ...this.state, split: "", with: "" })}" title="${this.title.replaceAll('"', "&quot;")}" width="640" height="420"></iframe>`;
    fill(this.below, this.other && differences(this), cdf && !this.labelled && this.shares(cdf, quantiles),
      section("Ask it yourself", snippet("Python", python), served && snippet("curl", curl), snippet("Query", text), served && [snippet("Frame", frame),
        p("fine", "A frame shows this chart in other pages, where the service is run with --allow-embedding.")]),
      section("What is seen", this.rows(this.below.querySelector("details.rows")?.open),
        download("Download as CSV", `${this.base}/view.csv${data}`, `${[this.name, ...this.names].join("-")}.csv`)));
  }

  async tools() {
    const { columns, state: { x, y, split }, about: { views }, seen: { filter } } = this, all = columns.map(({ name }) => name);
    const partners = all.filter((name) => name !== x && views.some(({ columns: held }) => held.includes(name) && held.includes(x)));
    const fresh = { ...FRESH, where: filter }, none = (value) => value || "nothing";
    const { releases } = await get("/index.json").catch(() => ({ releases: [] }));
    const others = releases.filter((each) => each.name !== this.name && each.state === "ready" && this.names.every((name) => each.columns.includes(name))).map((each) => each.name);
    const pick = (words, values, chosen, change, said = String) => h("label", { class: "pick" }, words, h("select", { onchange: ({ target }) => this.go(change(target.value)) },
      values.map((value) => h("option", { value, selected: value === chosen }, said(value)))));
    return div("tools", pick("Column", all, x, (value) => ({ ...fresh, x: value, y: "", with: "" })),
      partners.length > 0 && [pick("together with", ["", ...partners], y ?? "", (value) => ({ ...fresh, y: value }), none),
        !y && pick("split by", ["", ...partners.flatMap((name) => [name, ...months(columns, name)])], split ?? "", (value) => ({ split: value }), none)],
      others.length > 0 && pick("compared with", ["", ...others], this.state.with ?? "", (value) => ({ with: value }), none),
      pick("Confidence", [0.8, 0.9, 0.95, 0.99], this.confidence, (confidence) => ({ confidence }), percent),
      served ? conditions(filter, columns.filter(({ name }) => partners.includes(name) && name !== y), async (words) => {
        const where = this.where(words);
        await look(this.base, columns, { ...this.state, where, confidence: this.confidence });
        this.go({ where });
      }, this.complaint) : this.complaint && h("p", { class: "warn fine", role: "alert" }, this.complaint.words));
  }

  /** The filter and the selection as conditions. */
  where(filter = this.seen.filter) {
    if (this.labelled) return [filter, this.ranges.size > 0 && this.axes[0].among([...this.ranges])].filter(Boolean).join(" and ");
    const said = ([low, high], side) => (low > 0 || high < this.axes[side].size - 1) && this.axes[side].said([low, high]);
    return [filter, ...(this.ranges ?? []).map(said)].filter(Boolean).join(" and ");
  }

  draw(width) {
    this.frames = this.axes[1] ? frames(width, this.axes) : { main: new Frame(width, width < 560 ? 260 : 340) };
    this.brush = new Brush(this.frames.main, this.axes, this.ranges, (ranges, done) => this.moved(ranges, done));
    [this.under, this.readout] = [s("g"), p("fine readout")];
    const picture = this.frames.main.svg(`Counts by ${this.title}`, this.under, this.brush.element);
    picture.onpointermove = (event) => this.point(event);
    fill(this.figure, picture, this.readout);
    this.paint();
  }

  /** Labels as a list of bars. */
  list() {
    const other = new Map((this.other?.seen && items(this.other.axes[0], this.other.bins[0], this.other.seen) || []).map((item) => [item.name, item]));
    const all = items(this.axes[0], this.bins[0], this.seen).map((item) => ({ ...item, second: this.other?.seen && (other.get(item.name) ?? { value: 0, half: 0 }) }));
    this.labels = new Labels(all, this.ranges, () => this.moved(this.ranges, true), this.seen.single);
    fill(this.figure, this.labels.element);
    this.paint();
  }

  /** What lies under the brush, and what there is to say of it. */
  paint() {
    const { seen, axes: [x, y], ranges, frames: { main } = {}, other } = this, small = seen.small.flat(), noisy = small.filter(Boolean).length;
    if (!main && !this.labelled) return;
    if (main) {
      const top = y ? 0 : Math.max(ceiling(seen), other?.alike ? ceiling(other.seen) : 0);
      fill(this.under, y ? heat(this.frames, this.axes, seen, ranges)
        : [grid(main, 0, top), bars(main, x, this.bins[0], seen, ranges?.[0], top), other?.alike && steps(main, x, this.bins[0], other.seen, top), along(main, x)]);
    }
    fill(this.note, evidence(seen.basis), x.zone && p("fine", `Times are those of the clock in ${x.zone}.`), y && legend(seen), noisy > 0 && p("fine",
      `In ${count(noisy)} of ${count(small.length)} ${y ? "fields" : this.labelled ? "labels" : "bins (grey)"} the noise is as large as the count.`),
    this.labelled && p("fine", "The order is that of estimates: neighbours whose error bars overlap may stand in another."), this.windowed(), this.axes.map((axis) => axis.units && !axis.category && p("fine", `Here ranges of ${axis.name} begin and end at ${count(axis.units.length)} public values; the release file has no such limit.`)));
  }

  /** Which part of an axis is seen, how many rows are beside it, and a way to see all. */
  windowed() {
    const narrow = this.axes.filter((axis) => !axis.whole && !axis.category), [axis] = narrow;
    const back = this.axes.some(({ whole, column }) => whole && column.window) && this.state.range === "full";
    if (!narrow.length) return back && div("buttons", button("Where the rows are", () => this.go({ range: "" })));
    const given = [...FROM, ...TO].some((name) => this.state[name]), words = h("span");
    if (!this.axes[1]) this.countBeside(axis).then((said) => fill(words, said), () => null);
    return div("fine", narrow.map((each) => `Seen: ${each.name} ${each.span([each.first, each.last])}${given ? "" : ", where nearly all rows are"}; its axis goes from ${each.label(0)} to ${each.label(each.size - 1)}. `),
      words, div("buttons", button("Whole axis", () => this.go({ from: "", to: "", y_from: "", y_to: "", range: "full" }))));
  }

  async countBeside(axis) {
    const sides = [[0, axis.first - 1], [axis.last + 1, axis.size - 1]].filter(([low, high]) => low <= high);
    const found = await Promise.all(sides.map((side) => get(`${this.base}/count`, { where: [this.seen.filter, axis.said(side)].filter(Boolean).join(" and "), confidence: this.confidence })));
    return `About ${count(Math.max(0, found.reduce((sum, { value }) => sum + value, 0)))} ${plusMinus(found.some(({ half }) => half === null) ? null : Math.hypot(...found.map(({ half }) => half)))} rows lie on it beside the picture.`;
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
    if (!this.axes[1] && !this.labelled) this.paint();
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

  fillCount(answer) {
    const { value, half, interval: { low, high }, small, basis } = answer, second = h("div");
    this.count.classList.remove("stale");
    fill(this.count, h("h2", this.state.where ? "Rows in the selection" : "All rows"), p("big", h("strong", count(value)), plusMinus(half)),
      h("p", `Between ${count(Math.floor(low))} and ${count(Math.ceil(high))} with ${percent(this.confidence)} confidence.`),
      small && p("warn", "Noise dominates: the error is as large as the count."), second, evidence(basis));
    this.other?.count?.(this.state.where, this.confidence, answer).then((words) => fill(second, words));
    say(`${count(value)} rows, ${plusMinus(half).replace("±", "plus or minus")}${small ? ", noise dominates" : ""}`);
  }

  fillPanel() {
    const { axes, ranges, panel, seen: { specials } } = this, focused = document.activeElement.name, labels = this.labelled && [...ranges];
    fill(panel, labels ? labels.length > 0 && p("fine", `Selected: ${labels.slice(0, 20).join(", ")}${labels.length > 20 ? ` and ${labels.length - 20} more` : ""}`)
      : axes.map((axis, side) => this.ends(axis, side)), div("buttons",
      labels ? labels.length > 0 && button("Clear", () => this.labels.clear()) : ranges && [button("Clear", () => this.brush.set(null, true)), (served || !axes[1]) && button("Zoom in", () => this.zoom(ranges))]),
    specials && div("specials", h("h2", "Not on the axis"), facts(specials.map(({ name, value, half }) => [name, `${count(value)} ${plusMinus(half)}`]))));
    if (focused) panel.querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
  }

  zoom(ranges) {
    const window = this.axes.flatMap((axis, side) => [[FROM[side], axis.text(ranges[side][0])], [TO[side], axis.text(ranges[side][1])]]);
    this.go({ ...Object.fromEntries(window), range: "", where: this.seen.filter });
  }

  /** Fields for the exact ends of a range; an end beside the picture shows the whole axis. */
  ends(axis, side) {
    const { name, kind, column: { labels } } = axis;
    const typed = (end, cell) => {
      if (Number.isNaN(cell)) return this.fillPanel();
      if (cell >= axis.first && cell <= axis.last) return this.brush.set(this.brush.ended(side, end, cell), true);
      this.ranges = this.brush.ended(side, end, cell).map((range, place) => this.axes[place].snap(range));
      return this.go({ from: "", to: "", y_from: "", y_to: "", range: "full", where: this.where() });
    };
    return h("fieldset", { class: kind === "timestamp" ? "ends long" : "ends" }, h("legend", name), (this.ranges?.[side] ?? [axis.first, axis.last]).map((cell, end) => {
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
    return h("details", { class: "rows", open, ontoggle }, h("summary", "As a table"));
  }
}

/** A range as cells; an open end is the end of the axis. */
const cells = (axis, range) => [range?.low, range?.high].map((text, end) => axis.clamp(text ? axis.cell(text) : [axis.first, axis.last][end]));

const outside = (axis, text) => axis.cell(text) < axis.first || axis.cell(text) > axis.last;
