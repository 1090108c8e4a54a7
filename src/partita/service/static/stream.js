// A stream: a number for every period, as they come.

import { download, get, listen } from "./api.js";
import { Axis, count, percent, plusMinus } from "./axis.js";
import { div, fill, fitted, h, here, p, say, section, settled, show, table } from "./dom.js";
import { duration, promised } from "./overview.js";
import { Frame, along, dot, grid, line } from "./plot.js";
import { short } from "./words.js";

const SHOWN = 400, LISTED = 100;
const clock = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", dateStyle: "medium", timeStyle: "medium" });
const moment = (text) => clock.format(Date.parse(text));
const error = ({ off }) => (off === null ? "" : plusMinus(off));
const value = (record, key) => (key === null ? record.value : record.values[key]);

export async function stream(name) {
  const base = `/streams/${name}`;
  here([[name, base]], `${base}.json`);
  const about = await get(`${base}.json`), since = Math.max(0, about.closed - SHOWN);
  new Stream(base, about, (await get(`${base}/outputs.json`, { since, limit: SHOWN })).outputs).open();
}

class Stream {
  constructor(base, about, records) {
    Object.assign(this, { base, about, records, keys: about.keys ?? [null] });
    this.redraw = settled(() => {
      this.charts.forEach(([key, chart]) => this.draw(key, chart, chart.clientWidth));
      this.fill();
      say(this.now.textContent);
    }, 20);
  }

  open() {
    const { about, base, keys, records } = this, { name, period_seconds: seconds, window, guarantee, mechanism, start } = about;
    [this.now, this.state, this.history] = [div("count"), p("fine"), h("div")];
    this.charts = keys.map((key) => [key, div("figure")]);
    show(h("h1", name),
      p("lead", `${window ? `A count over ${count(window)} periods` : "A running count"}, published every ${duration(seconds)} whether or not anything happened, with ${short(guarantee)}.`),
      this.now, this.state, div("multiples", this.charts.map(([key, chart]) => h("div", key && h("h2", key), chart))),
      promised(guarantee, {}, [["Mechanism", mechanism], ["Begins", `${moment(start)} UTC`]]),
      section("What is seen", this.history, download("Download as CSV", `${base}/outputs.csv`, `${name}.csv`)));
    this.charts.forEach(([key, chart]) => fitted(chart, (width) => this.draw(key, chart, width)));
    this.fill();
    const hear = (live) => { this.state.textContent = live ? "Live." : "The line is closed; trying again."; };
    listen(`${base}/live`, records.at(-1)?.period ?? about.closed, (record) => this.add(record), hear);
  }

  add(record) {
    if (record.period <= (this.records.at(-1)?.period ?? 0)) return;
    this.records = [...this.records, record].slice(-SHOWN);
    this.redraw();
  }

  fill() {
    const { records, keys, about: { confidence = 0.95 } } = this, last = records.at(-1);
    if (!last) return fill(this.now, h("p", "Nothing yet: the first period has not ended."));
    fill(this.now, keys.map((key) => p(key ? "big several" : "big", key && `${key} `, h("strong", count(value(last, key))), error(last))),
      h("p", `Period ${count(last.period)}, ended ${moment(last.end)} UTC${last.off === null ? "" : `; bounds at ${percent(confidence)} confidence`}.`));
    const rows = records.slice(-LISTED).reverse().map((record) => [count(record.period), moment(record.end), ...keys.map((key) => count(value(record, key))), error(record)]);
    return fill(this.history, table(`The last ${rows.length} periods`, ["period", "end, UTC", ...keys.map((key) => key ?? "count"), "error"], rows));
  }

  draw(key, chart, width) {
    const { records, about: { period_seconds: seconds } } = this;
    if (!records.length) return;
    const values = records.map((record) => value(record, key)), off = records.map((record) => record.off);
    const low = Math.min(0, ...values), high = Math.max(1, ...values.map((each, place) => each + off[place])), share = (number) => (number - low) / (high - low);
    const start = new Date(Date.parse(records[0].end) - 1000 * seconds).toISOString();
    const axis = new Axis({ name: "time", kind: "timestamp", start, resolution: `${Math.round(1000 * seconds)}ms`, size: records.length });
    const points = values.map((each, place) => ({ x: axis.at(place + 1), value: share(each), sure: off[place] !== null, low: share(each - off[place]), high: share(each + off[place]) }));
    const frame = new Frame(width, key ? 180 : 320), { x, value: y } = points.at(-1);
    fill(chart, frame.svg(`Count over time ${key ?? ""}`, grid(frame, low, high), along(frame, axis), line(frame, points), dot(frame, x, y)));
  }
}
