// The answers to what the page asks, from files beside it. No request is sent: data are scripts that call `partita`.

import { Axis, word } from "./axis.js";
import { h } from "./dom.js";
import { modelOf, placeOf, unpacked } from "./ranges.js";

const COLUMN = 60, POINTS = 200, GROUPS = 12, MOST_LABELS = 4096;

/** What cannot be answered here, and why. */
export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

const refuse = (words) => { throw new Refused(400, words); };
const SERVER = "Ask the release file with Python, or a service, for that.";

/** An address with a query; what is empty is left out. */
export function address(path, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value || value === 0)).toString();
  return query ? `${path}?${query}` : path;
}

// ---- data files ----

const heard = new Map(), waiting = new Map();

window.partita = (name, record) => heard.set(name, record);

/** A record that a file hands over; loaded once. */
function load(name) {
  if (!waiting.has(name)) {
    waiting.set(name, new Promise((done, failed) => {
      const script = h("script", { src: `data/${name}.js` });
      script.onload = () => (heard.has(name) ? done(unpacked(heard.get(name))) : failed(new Refused(409, `The file data/${name}.js is damaged.`)));
      script.onerror = () => failed(new Refused(404, `There is nothing here: data/${name}.js is not in the folder.`));
      document.head.append(script);
    }));
  }
  return waiting.get(name);
}

const NAME = /^[A-Za-z0-9][\w.-]*$/;

async function about(name) {
  if (!NAME.test(name)) throw new Refused(404, "There is no release of this name.");
  return load(`${name}/about`);
}

/** A column of a release: what is known about it, and its model. */
async function columnOf(name, wanted) {
  const known = await about(name), number = known.about.columns.findIndex((column) => column.name === wanted);
  if (number < 0) refuse(`There is no column ${wanted} here.`);
  const data = await load(`${name}/column-${number}`), column = known.about.columns[number];
  data.solved ??= modelOf(data);
  return { number, data, column, axis: new Axis(column), solved: data.solved, size: BigInt(data.size) };
}

// ---- values and cells ----

/** The cell of a value as a whole number of any size. */
function cellOf({ column, axis, size }, text) {
  if (column.kind === "integer" && /^-?\d+$/.test(text)) {
    const cell = BigInt(text) - BigInt(column.low);
    return cell < 0n ? 0n : cell >= size ? size - 1n : cell;
  }
  const cell = axis.cell(text);
  if (Number.isNaN(cell)) refuse(`${axis.name} has no value ${text}.`);
  return BigInt(cell) >= size ? size - 1n : BigInt(cell);
}

const textOf = ({ column, axis }, cell) => (column.kind === "integer" ? String(BigInt(column.low) + cell) : axis.text(Number(cell)));

const TOKEN = /\s*('(?:[^']|'')*'|[\w.:+-]+|[(),=])/y;
const plain = (token) => (token?.startsWith("'") ? token.slice(1, -1).replaceAll("''", "'") : token);

/** Conditions as this page writes them: ranges, labels and sets of labels, joined by `and`. */
export function conditionsOf(text) {
  const tokens = [], found = {};
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) tokens.push(match[1]);
  const next = (wanted) => {
    const token = tokens.shift();
    if (token === undefined || (wanted && token !== wanted)) refuse(`This page cannot read the condition ${text}. ${SERVER}`);
    return plain(token);
  };
  while (tokens.length) {
    const column = next(), what = next();
    if (what === "between") {
      const low = next();
      next("and");
      found[column] = { low, high: next() };
    } else if (what === "=") found[column] = { values: [next()] };
    else if (what === "in") {
      next("(");
      for (found[column] = { values: [next()] }; tokens[0] === ",";) found[column].values.push((next(","), next()));
      next(")");
    } else refuse(`This page cannot read the condition ${text}. ${SERVER}`);
    if (tokens.length) next("and");
  }
  return found;
}

/** The cells that a condition on a column names: a range, or labels. */
function rangeOf(side, { low, high, values }) {
  if (values) return values.map((value) => cellOf(side, value));
  return { low: cellOf(side, low), high: cellOf(side, high) };
}

// ---- records, as the service sends them ----

const number = (value) => (Number.isFinite(value) ? value : null);
const isSmall = (value, half) => !(Number.isFinite(value) && Number.isFinite(half)) || half >= Math.abs(value);

/** How many standard errors a bar of this confidence has. */
function deviationsOf({ deviations }, confidence = 0.95) {
  return deviations[confidence] ?? refuse(`This page knows errors of ${Object.keys(deviations).join(", ")} confidence only.`);
}

function counted({ value, error, basis = null }, z, confidence, interval) {
  const half = z * error, [low, high] = interval ?? [Math.max(0, value - half), Math.max(0, value + half)];
  return { value: number(value), error: number(error), half: number(half), small: isSmall(value, half), basis, interval: { confidence, low: number(low), high: number(high) } };
}

function withBars(found, z, basis) {
  const [values, error] = ["value", "error"].map((key) => found.map((each) => each[key])), half = error.map((each) => z * each);
  return { values, error, half, small: values.map((value, place) => isSmall(value, half[place])), basis: basis ?? null };
}

/** Several labels together: each set was asked for, or counts are independent and add up. */
function setOf(side, cells, z, confidence) {
  const { data: { sets, basis }, solved, axis } = side, all = [...new Set(cells)].sort((one, other) => Number(one - other));
  if (all.length === 1) return counted({ ...solved.count(all[0], all[0]), basis }, z, confidence);
  if (sets?.kind === "listed") {
    const found = sets.sets.find((each) => each.cells.length === all.length && each.cells.every((cell, place) => BigInt(cell) === all[place]));
    return counted(found, z, confidence, found.intervals[confidence]);
  }
  if (sets?.kind !== "sums") refuse(`Labels of ${axis.name} can be chosen one at a time on this page. ${SERVER}`);
  if (all.length > sets.most) refuse(`At most ${sets.most} labels can be chosen together on this page. ${SERVER}`);
  const { sums, factor, variance } = solved, drawn = all.reduce((sum, cell) => sum + sums[Number(cell) + 1] - sums[Number(cell)], 0);
  const value = drawn * factor, error = Math.sqrt(all.length * variance), half = z * error, reach = sets.reach[confidence][all.length - 1];
  const [low, high] = [Math.max(0, Math.min(drawn - reach, value)), Math.max(0, drawn + reach, value)];
  return counted({ value, error, basis }, z, confidence, [Math.max(low, value - half), Math.min(high, Math.max(0, value + half))]);
}

/** What could be asked for in place of a range that is not one of units in a row. */
function nearest(side, low, high) {
  const units = side.data.units.map((unit) => unit.map(BigInt)), near = (end, cell) => [units.findLast((unit) => unit[end] <= cell), units.find((unit) => unit[end] >= cell)];
  const said = (end, cell) => [...new Set(near(end, cell).filter(Boolean).map((unit) => textOf(side, unit[end])))].join(" or ");
  refuse(`On this page a range of ${side.axis.name} begins and ends at one of ${units.length} public values: begin at ${said(0, low)}, and end at ${said(1, high)}. ${SERVER}`);
}

function rangeCount(side, low, high) {
  return side.solved.count(low, high) ?? nearest(side, low, high);
}

async function count(name, { where = "", confidence }) {
  const known = await about(name), z = deviationsOf(known, confidence), found = Object.entries(conditionsOf(where));
  if (!found.length) return total(known, confidence);
  if (found.length === 1) {
    const side = await columnOf(name, found[0][0]), asked = rangeOf(side, found[0][1]);
    if (Array.isArray(asked)) return setOf(side, asked, z, confidence);
    return counted({ ...rangeCount(side, asked.low, asked.high), basis: side.data.basis }, z, confidence);
  }
  if (found.length > 2) refuse(`Conditions on three columns cannot be answered on this page. ${SERVER}`);
  const sides = await Promise.all(found.map(([column]) => columnOf(name, column)));
  const map = await mapWith(name, sides, sides.map((side, place) => rangeOf(side, found[place][1])));
  return counted(map, z, confidence);
}

function total({ totals }, confidence = 0.95) {
  const { refused, ...found } = totals[confidence] ?? refuse("This page does not know errors of that confidence.");
  return refused ? refuse(refused) : found;
}

// ---- charts of one column ----

/** Ranges of cells, which are written as text. */
const whole = (spans) => spans.map((span) => span.map(BigInt));

/** Even bins of a window, as Python makes them. */
function evenBins(first, last, most) {
  const size = last - first + 1n, width = (size + BigInt(most) - 1n) / BigInt(most), bins = size / width;
  return Array.from({ length: Number(bins) }, (_, place) => [first + (size * BigInt(place)) / bins, first + (size * BigInt(place + 1)) / bins - 1n]);
}

/** The bins of a window; where counts are of public ranges in a row, some of these together. */
function binsOf({ data, column }, first, last, most) {
  const ending = (spans) => spans && whole(spans).length && BigInt(spans[0][0]) === first && BigInt(spans.at(-1)[1]) === last && whole(spans);
  if (most === GROUPS && ending(data.groups)) return ending(data.groups);
  if (column.kind === "category" && most >= MOST_LABELS) return Array.from({ length: Number(last - first) + 1 }, (_, place) => [first + BigInt(place), first + BigInt(place)]);
  if (!data.units) return evenBins(first, last, most);
  const units = data.charts.map(ending).find(Boolean) || whole(data.units).filter(([low, high]) => low >= first && high <= last);
  if (!units.length) return refuse(`There is nothing between ${first} and ${last}.`);
  return evenBins(0n, BigInt(units.length) - 1n, most).map(([one, other]) => [units[Number(one)][0], units[Number(other)][1]]);
}

const axisRecord = (side, bins, units = side.data.units) => ({
  column: side.axis.name, kind: side.column.kind, lows: bins.map(([low]) => textOf(side, low)), highs: bins.map(([, high]) => textOf(side, high)),
  units: units?.map((unit) => unit.map(Number)),
});

function selectionOf(found, columns) {
  const own = Object.entries(found).filter(([column]) => columns.includes(column));
  return { ranges: Object.fromEntries(own.filter(([, each]) => !each.values)), values: Object.fromEntries(own.filter(([, each]) => each.values).map(([column, { values }]) => [column, values])) };
}

const written = (found) => Object.entries(found).map(([column, { low, high, values }]) => (values
  ? `${word(column)} ${values.length === 1 ? `= ${word(values[0])}` : `in (${values.map(word).join(", ")})`}` : `${word(column)} between ${word(low)} and ${word(high)}`)).join(" and ");

/** How to ask for the selection elsewhere. */
function snippets(name, where) {
  const python = `import partita as pt\n\nrelease = pt.load('${name}.release.parquet')\nprint(release.count(${where ? JSON.stringify(where) : ""}))`;
  return { python, text: where ? `count where ${where}` : "count" };
}

async function view(name, { x, y, where = "", from, to, y_from, y_to, bins = COLUMN, confidence = 0.95 }) {
  const known = await about(name), z = deviationsOf(known, confidence), found = conditionsOf(where), columns = [x, y].filter(Boolean);
  const side = await columnOf(name, x), others = Object.keys(found).filter((column) => !columns.includes(column));
  const filter = written(Object.fromEntries(others.map((column) => [column, found[column]])));
  const common = { release: name, x, y: y ?? null, where: written(found), filter, confidence, selection: selectionOf(found, columns), snippets: snippets(name, written(found)) };
  if (y) return { ...common, ...await chartOfTwo(name, known, [side, await columnOf(name, y)], found, { confidence, z, ends: [from, y_from, to, y_to] }) };
  if (others.length) return { ...common, ...await chartOfGroup(name, side, others, found, z, { from, to }) };
  const first = from ? cellOf(side, from) : 0n, last = to ? cellOf(side, to) : side.size - 1n, chart = binsOf(side, first, last, Number(bins));
  const { axis, data, solved } = side, selection = { ...common.selection, count: await count(name, { where, confidence }) };
  const specials = data.specials.map((each) => ({ ...each, half: z * each.error }));
  return { ...common, axes: [axisRecord(side, chart)], ...withBars(chart.map(([low, high]) => rangeCount(side, low, high)), z, data.basis), selection,
    total: total(known, confidence), cdf: cdf(side, chart, z), quantiles: data.quantiles[confidence], specials, conditional: null, single: axis.category && !data.sets && axis.size > 1 };
}

/** The share of rows up to the ends of some bins. */
function cdf(side, bins, z) {
  const step = Math.ceil(bins.length / POINTS), ends = bins.map(([, high]) => high).filter((_, place) => (bins.length - 1 - place) % step === 0);
  const { solved, data } = side, share = ends.map((end) => (data.total ? solved.upto(end) / data.total : 0));
  const half = ends.map((end) => (data.total > 0 ? (z * rangeCount(side, 0n, end).error) / data.total : Infinity)), held = (value) => Math.min(1, Math.max(0, value));
  return { at: ends.map((end) => textOf(side, end)), share, low: share.map((each, place) => held(each - half[place])), high: share.map((each, place) => held(each + half[place])) };
}

// ---- two columns ----

/** What was written of two columns, and whether the first of them is the second there. */
async function pairOf(name, sides) {
  const { pairs } = await about(name), places = sides.map((side) => side.number), [one, other] = [...places].sort((a, b) => a - b);
  const names = sides.map(({ axis }) => axis.name).join(" and ");
  if (!pairs.some(([a, b]) => a === one && b === other)) refuse(`${names} were not released together, or not written for this page. ${SERVER}`);
  return { data: await load(`${name}/pair-${one}-${other}`), turned: places[0] > places[1] };
}

/** A small chart of one column for a group of another. */
async function chartOfGroup(name, side, others, found, z, shown) {
  if (others.length > 1) refuse(`Conditions on two other columns cannot be answered on this page. ${SERVER}`);
  const by = await columnOf(name, others[0]), { data, turned } = await pairOf(name, [side, by]), split = data.splits[turned ? 1 : 0];
  if (!split) refuse(`There are too many groups of ${by.axis.name} for this page. ${SERVER}`);
  const asked = rangeOf(by, found[others[0]]), [low, high] = Array.isArray(asked) ? [asked[0], asked.at(-1)] : [asked.low, asked.high];
  const group = by.data.groups.findIndex(([from, to]) => BigInt(from) === low && BigInt(to) === high), bins = whole(split.bins);
  const ends = [[shown.from, bins[0][0]], [shown.to, bins.at(-1)[1]]];
  if (group < 0 || (Array.isArray(asked) && asked.length > 1)) refuse(`This is no group of ${by.axis.name} on this page. ${SERVER}`);
  if (ends.some(([text, end]) => text && cellOf(side, text) !== end)) refuse(`Groups are shown where nearly all rows are, not in other parts of ${side.axis.name}. ${SERVER}`);
  const fields = bins.map((_, place) => ({ value: split.values[group * bins.length + place], error: split.errors[group * bins.length + place] }));
  return { axes: [axisRecord(side, bins)], ...withBars(fields, z, split.basis), cdf: null, quantiles: null, specials: null, conditional: null };
}

/** A map in a window, seen with the first column across. */
async function mapOf(name, sides, which) {
  const { data: { maps }, turned } = await pairOf(name, sides), map = maps[which] ?? maps.window, swap = (pair) => (turned ? [pair[1], pair[0]] : pair);
  const bins = swap(map.bins).map(whole), units = swap(map.units).map(whole);
  const spans = units.map((each) => (each.length * (each.length + 1)) / 2);
  const at = ({ values, errors, basis }, i, j, lengths) => { const place = turned ? j * lengths[0] + i : i * lengths[1] + j; return { value: values[place], error: errors[place], basis }; };
  return {
    bins, units, basis: map.fields.basis,
    field: (i, j) => at(map.fields, i, j, bins.map((each) => each.length)),
    alone: (column, bin) => { const { values, errors } = map.alone[turned ? 1 - column : column]; return { value: values[bin], error: errors[bin] }; },
    rectangle: (i, j) => at(map.rectangles, i, j, spans),
    /** The bins of one column alone, in a range of the other. */
    beside: (column, bin, span) => (column === 0 ? at(map.beside[turned ? 1 : 0], bin, span, [bins[0].length, spans[1]]) : at(map.beside[turned ? 0 : 1], span, bin, [spans[0], bins[1].length])),
  };
}

/** The place of a range among those that units make up in a row; -1 if it has other ends. */
function spanOf(units, { low, high }) {
  const first = units.findIndex(([start]) => start === low), last = units.findIndex(([, end]) => end === high);
  return first < 0 || last < 0 ? -1 : placeOf(units.length, first, last);
}

const asRange = (asked) => (!Array.isArray(asked) ? asked : asked.length === 1 ? { low: asked[0], high: asked[0] } : refuse(`Sets of labels cannot be combined on this page. ${SERVER}`));

/** The count of a rectangle, on whichever map has it. */
async function mapWith(name, sides, asked) {
  for (const which of ["window", "full"]) {
    const map = await mapOf(name, sides, which), spans = asked.map((each, side) => spanOf(map.units[side], asRange(each)));
    if (spans.every((span) => span >= 0)) return map.rectangle(...spans);
  }
  return refuse(`Rectangles of ${sides.map(({ axis }) => axis.name).join(" and ")} begin and end at a few public values on this page. ${SERVER}`);
}

async function chartOfTwo(name, known, sides, found, { confidence, z, ends }) {
  const others = Object.keys(found).filter((column) => !sides.some(({ axis }) => axis.name === column));
  if (others.length) refuse(`A map with a condition on ${others[0]} cannot be shown on this page. ${SERVER}`);
  const map = await mapOf(name, sides, ends.some(Boolean) ? "window" : "full");
  if (ends.some((text, place) => text && cellOf(sides[place % 2], text) !== map.bins[place % 2].at(place < 2 ? 0 : -1)[place < 2 ? 0 : 1])) refuse(`Maps are drawn in two windows on this page, and this is none of them. ${SERVER}`);
  const [across, up] = map.bins.map((bins) => [...bins.keys()]);
  const table = (of) => across.map((i) => up.map((j) => of(map.field(i, j)))), half = table(({ error }) => z * error), values = table(({ value }) => value);
  const columns = sides.map(({ axis }) => axis.name), asked = sides.map((side) => found[side.axis.name] && asRange(rangeOf(side, found[side.axis.name])));
  const where = written(found), beside = {};
  ["x", "y"].forEach((key, side) => {
    const other = asked[1 - side], span = other ? spanOf(map.units[1 - side], other) : null;
    if (span === -1) refuse(`Ranges of ${columns[1 - side]} begin and end at ${map.units[1 - side].length} public values on this map.`);
    const alone = map.bins[side].map((_, bin) => (other ? map.beside(side, bin, span) : map.alone(side, bin)));
    beside[key] = { of: columns[side], given: columns[1 - side], ...withBars(alone, z) };
  });
  return { axes: sides.map((side, place) => axisRecord(side, map.bins[place], map.units[place])), values, half, error: table(({ error }) => error), basis: map.basis,
    small: values.map((row, i) => row.map((value, j) => isSmall(value, half[i][j]))),
    selection: { ...selectionOf(found, columns), count: await count(name, { where, confidence }) }, total: total(known, confidence), cdf: null, quantiles: null, specials: null, conditional: beside };
}

// ---- sums ----

async function measure(name, kind, { column, where = "", confidence }) {
  const known = await about(name), z = deviationsOf(known, confidence), found = Object.entries(conditionsOf(where)), sums = known.sums[column];
  let key = "";
  if (found.length === 1) {
    const side = await columnOf(name, found[0][0]), asked = rangeOf(side, found[0][1]);
    const { low, high } = Array.isArray(asked) ? { low: asked[0], high: asked.at(-1) } : asked;
    key = Array.isArray(asked) && asked.length > 1 ? null : `${side.number}:${low}-${high}`;
  } else if (found.length) key = null;
  const record = sums?.[key]?.[kind] ?? refuse(`Sums of these rows were not written for this page. ${SERVER}`);
  if (record.refused) refuse(record.refused);
  const interval = record.intervals[confidence ?? 0.95];
  if (interval === undefined) refuse("This page does not know errors of that confidence.");
  return { ...record, half: record.error === null ? null : z * record.error, interval };
}

// ---- what the page asks ----

const ROUTES = [
  [/^\/index\.json$/, () => load("index")],
  [/^\/releases\/([^/]+)\.json$/, async (name) => (await about(name)).about],
  [/^\/releases\/([^/]+)\/view\.json$/, view],
  [/^\/releases\/([^/]+)\/count$/, count],
  [/^\/releases\/([^/]+)\/(mean|sum)$/, measure],
  [/^\/releases\/([^/]+)\/dependence$/, async (name) => (await about(name)).dependence],
];

export async function get(path, params = {}) {
  for (const [pattern, answer] of ROUTES) {
    const match = path.match(pattern);
    if (match) return answer(...match.slice(1), Object.fromEntries(Object.entries(params).filter(([, value]) => value || value === 0)));
  }
  return refuse(`This page has no server that could answer ${path}.`);
}

export const listen = () => new Promise(() => {});

/** A link to a file of the folder; what is seen as CSV is made when it is asked for. */
export function download(words, href, name) {
  const [, release, what] = href.match(/^\/releases\/([^/]+)\/([^?]+)/);
  if (what !== "view.csv") return h("a", { href: `files/${release}.${what === "file" ? "release.parquet" : what}`, download: name }, words);
  return h("a", { href: "", download: name, async onclick(event) {
    event.preventDefault();
    const file = URL.createObjectURL(new Blob([csv(await view(release, Object.fromEntries(new URLSearchParams(href.split("?")[1]))))], { type: "text/csv" }));
    h("a", { href: file, download: name }).click();
    setTimeout(URL.revokeObjectURL, 10000, file);
  } }, words);
}

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const safe = (text) => quoted(/^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d*)?(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text);

function csv({ axes, values, error, half }) {
  const heads = axes.flatMap(({ column }) => [`${column} from`, `${column} to`]), [x, y] = axes;
  const ends = ({ lows, highs }, place) => [safe(lows[place]), safe(highs[place])], numbers = (...of) => of.map(String);
  const rows = values.flatMap((value, i) => (y ? value.map((each, j) => [...ends(x, i), ...ends(y, j), ...numbers(each, error[i][j], half[i][j])])
    : [[...ends(x, i), ...numbers(value, error[i], half[i])]]));
  return [[...heads.map(safe), "count", "error", "half"], ...rows].map((row) => `${row.join(",")}\n`).join("");
}
