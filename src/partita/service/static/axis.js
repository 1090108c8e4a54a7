// The public cells of a column as a line: where values lie and how they are written.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR, MONTH = 30.4 * DAY;
const UNITS = { ns: 1e-6, us: 1e-3, ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY };
const STEPS = [SECOND, MINUTE].flatMap((unit) => [1, 5, 15, 30].map((n) => n * unit))
  .concat([1, 3, 6, 12, 24, 48, 168, 336].map((n) => n * HOUR));
const RESERVED = /^(and|at|between|in|is|of|where|[+-])$/i;

export const written = (value, digits = 0, more = {}) =>
  new Intl.NumberFormat("en", { maximumFractionDigits: digits, ...more }).format(value).replace("-", "−");

/** A count: whole, or with a decimal where it is small. */
export const count = (value) => (value === null ? "unknown" : written(value, Math.abs(value) < 10 ? 1 : 0));

export const brief = (value) => written(value, undefined, { notation: "compact", maximumSignificantDigits: 3 });

export const plusMinus = (half) => `± ${half === null ? "unknown" : count(half < 10 ? Math.ceil(10 * half) / 10 : Math.ceil(half))}`;

export const percent = (share, digits) => `${written(100 * share, digits)}%`;

/** About `most` round numbers from low to high, no closer than `least`. */
export function round(low, high, most, least = 0) {
  const rough = Math.max((high - low) / most, least, 1e-300), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= 0.999 * rough);
  return multiples(low, high, step).map((value) => Number(value.toPrecision(12)));
}

function multiples(low, high, step) {
  const first = Math.ceil(low / step - 1e-9), length = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length }, (_, place) => (first + place) * step);
}

const CLOCK = { hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
const clocks = {};

/** How far the clock of a zone is ahead of UTC at a moment, in milliseconds. */
function ahead(time, zone) {
  if (!zone || zone === "UTC") return 0;
  const clock = clocks[zone] ??= new Intl.DateTimeFormat("en-US", { timeZone: zone, ...CLOCK });
  const { year, month, day, hour, minute, second } = Object.fromEntries(clock.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / SECOND) * SECOND;
}

/** The moment at which the clock of a zone shows a time, which is written as if it were UTC. */
const shownAt = (wall, zone) => wall - ahead(wall - ahead(wall, zone), zone);

/** Round moments on the clock of a zone: whole seconds, hours, days, months or years. */
const moments = (zone) => (low, high, ...more) =>
  onClock(low + ahead(low, zone), high + ahead(high, zone), ...more).map((wall) => shownAt(wall, zone));

function onClock(low, high, most, least) {
  const rough = Math.max((high - low) / most, least), step = STEPS.find((length) => length >= rough);
  if (step) return multiples(low, high, step);
  const months = [1, 3, 6, 12, 24, 60, 120, 240, 600].find((number) => number * MONTH >= rough) ?? 1200;
  const number = (time) => new Date(time).getUTCFullYear() * 12 + new Date(time).getUTCMonth();
  return multiples(number(low), number(high), months).map((month) => new Date(0).setUTCFullYear(0, month)).filter((time) => time >= low);
}

/** A word of the query language, in quotes if it needs them. */
export const word = (text) => (/^[\w.:+-]+$/.test(text) && !RESERVED.test(text) ? text : `'${text.replaceAll("'", "''")}'`);

export const ratio = (text) => String(text).replace(/[,\s]/g, "").split("/").map(Number).reduce((top, below) => top / below);
const places = (text = "") => (text.split(".")[1] ?? "").length;

/** A moment as text; without an offset it is one on the clock of the zone. */
function instant(text, zone) {
  if (/t.*(z|[+-]\d\d:\d\d)$/i.test(text)) return Date.parse(text);
  return shownAt(Date.parse(text.length <= 10 ? text : `${text.replace(" ", "T")}Z`), zone);
}

/** A number with the digits that its error supports, as the library writes it; an error has two. */
export function figure(value, half, error) {
  if (!(half > 0)) return Math.abs(value) >= 1e9 ? brief(value) : written(value, 2);
  const second = Math.floor(Math.log10(Number(half.toPrecision(2)))) - 1, place = Math.max(-12, second > 0 && !error ? second - 1 : second);
  const shown = place > 0 ? Math.round(value / 10 ** place) * 10 ** place : value, digits = Math.max(0, -place);
  return written(shown, digits, { minimumFractionDigits: digits });
}

/** A number and its error: ± half of its interval, or both ends where the sides differ by more than a twentieth. */
export function bounded(value, { low, high }, written_ = figure) {
  const [below, above] = [value - low, high - value], half = Math.max(below, above), wide = (high - low) / 2;
  if (low === null || high === null) return [written_(value, 0), "± unknown"];
  if (half - Math.min(below, above) <= half / 20) return [written_(value, half), `± ${written_(half, half, true)}`];
  return [written_(value, wide), `(${written_(low, wide)} to ${written_(high, wide)})`];
}

/** A column, or a window of it: cell k holds what begins at the origin plus k steps. */
export class Axis {
  constructor(column, from, to) {
    const { name, kind, size, low, high, start, end, step, resolution, zone } = column;
    Object.assign(this, { column, name, kind, zone, size: Number(size), low: low ?? start, high: high ?? end });
    this.category = kind === "category";
    this.time = kind === "date" || kind === "timestamp";
    this.step = { date: () => DAY, timestamp: () => parseInt(resolution, 10) * UNITS[resolution.replace(/\d+/, "")], real: () => ratio(step) }[kind]?.() ?? 1;
    this.origin = this.category ? 0 : this.read(this.low);
    this.first = from ? this.cell(from) : 0;
    this.last = to ? Math.max(this.first, this.cell(to)) : this.size - 1;
  }

  get cells() { return this.last - this.first + 1; }
  get whole() { return this.cells === this.size; }

  /** A range between the points at which ranges may begin and end, if not everywhere. */
  snap([low, high]) {
    if (!this.units) return [low, high];
    const near = (end, cell) => this.units.reduce((best, unit, at) => (Math.abs(unit[end] - cell) < Math.abs(this.units[best][end] - cell) ? at : best), 0);
    const first = near(0, low);
    return [this.units[first][0], this.units[Math.max(first, near(1, high))][1]];
  }

  /** So many steps from one end of a range. */
  moved(cell, by, end) {
    if (!this.units) return cell + by;
    const at = this.units.findIndex((unit) => unit[end] >= cell);
    return this.units[Math.min(this.units.length - 1, Math.max(0, (at < 0 ? this.units.length - 1 : at) + Math.sign(by)))][end];
  }

  /** Where a cell begins, as a share of the window; and back. */
  at(cell) { return (cell - this.first) / this.cells; }
  under(share) { return this.clamp(Math.floor(this.first + share * this.cells)); }
  clamp(cell) { return Math.min(this.last, Math.max(this.first, cell)); }

  read(text) { return this.time ? instant(text, this.zone) : ratio(text); }
  number(cell) { return this.origin + cell * this.step; }

  /** The cell of a value, written as in the query language; NaN if it is none. */
  cell(text) {
    if (this.category) return this.column.labels.indexOf(text) < 0 ? NaN : this.column.labels.indexOf(text);
    const cell = (this.read(text) - this.origin) / this.step;
    return Math.min(this.size - 1, Math.max(0, this.time ? Math.floor(cell + 1e-9) : Math.round(cell)));
  }

  text(cell) {
    if (this.category) return this.column.labels[cell];
    if (this.kind === "real") return this.number(cell).toFixed(Math.min(12, places(this.column.step)));
    if (this.time) return this.kind === "date" ? new Date(this.number(cell)).toISOString().slice(0, 10) : this.stamp(this.number(cell));
    return cell === this.size - 1 ? this.high : String(BigInt(this.low) + BigInt(cell));
  }

  /** A moment on the clock of the zone, with its offset. */
  stamp(time) {
    const by = ahead(time, this.zone), iso = new Date(by % MINUTE ? time : time + by).toISOString().replace(".000", "");
    const two = (number) => String(Math.floor(number)).padStart(2, "0"), off = Math.abs(by) / MINUTE;
    return by % MINUTE || !by ? iso : iso.replace("Z", `${by < 0 ? "-" : "+"}${two(off / 60)}:${two(off % 60)}`);
  }

  /** As people read it. */
  label(cell) {
    if (this.time) return this.moment(this.number(cell));
    return this.category || this.size > 2 ** 53 ? this.text(cell) : written(this.number(cell), places(this.column.step));
  }
  span([low, high]) { return low === high ? this.label(low) : `${this.label(low)} to ${this.label(high)}`; }

  said([low, high]) { return `${word(this.name)} between ${word(this.text(low))} and ${word(this.text(high))}`; }

  /** Labels as a condition. */
  among(labels) { return `${word(this.name)} ${labels.length === 1 ? `= ${word(labels[0])}` : `in (${labels.map(word).join(", ")})`}`; }

  moment(value, asked) {
    const all = { dateStyle: "medium", timeStyle: this.step < MINUTE ? "medium" : this.step < DAY ? "short" : undefined };
    return new Intl.DateTimeFormat("en-GB", { timeZone: this.zone ?? "UTC", ...(asked ?? all) }).format(value);
  }

  ticks(most) {
    if (this.category) return round(this.first, this.last, most, 1).map((cell) => ({ cell, words: this.text(cell) }));
    const low = this.number(this.first), high = this.number(this.last);
    const values = (this.time ? moments(this.zone) : round)(low, high, most, this.step);
    return values.map((value) => ({ cell: (value - this.origin) / this.step, words: this.tick(value, high - low) }));
  }

  tick(value, width) {
    if (!this.time) return Math.abs(value) >= 1e5 ? brief(value) : written(value, places(this.column.step));
    if (width < 2 * DAY && this.step < DAY) return this.moment(value, { timeStyle: width < 9 * MINUTE ? "medium" : "short" });
    if (width > 48 * MONTH) return this.moment(value, { year: "numeric" });
    return this.moment(value, width > 4 * MONTH ? { month: "short", year: "numeric" } : { day: "numeric", month: "short" });
  }
}
