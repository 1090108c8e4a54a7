// What a chart asks the service for: its columns, their windows and bins, and what comes back.

import { get } from "./api.js";
import { Axis } from "./axis.js";
import { served } from "./place.js";
import { binned } from "./plot.js";

export const FROM = ["from", "y_from"];
export const TO = ["to", "y_to"];
const MOST = 4096, MAP = 64, COARSE = 16, LATITUDE = /(^|[\W_])lat(itude)?$/i, LONGITUDE = /(^|[\W_])(lon|lng|long|longitude)$/i;

/** Whether two columns are the places of a map: longitudes to the right and latitudes up. */
export const isMap = (x, y) => LONGITUDE.test(x ?? "") && LATITUDE.test(y ?? "");

/** Whether noise dominates nearly all fields of a map: then it has larger ones. */
const noisy = ({ small }) => small.flat().filter(Boolean).length > 0.9 * small.flat().length;

/** The axes of a chart, in the windows that it names, or else where nearly all rows lie. */
function axesOf(columns, state) {
  return [state.x, state.y].filter(Boolean).map((wanted, side) => {
    const column = columns.find(({ name }) => name === wanted), given = [state[FROM[side]], state[TO[side]]];
    const window = given.some(Boolean) ? given : state.range === "full" ? [] : column?.window ?? [];
    return column && new Axis(column, ...window);
  });
}

/** The data of a chart, its axes and its bins. A label always has a bin of its own. */
export async function look(base, columns, state, bins) {
  const { x, y, where, confidence } = state, axes = axesOf(columns, state), asked = { x, y, where, confidence, bins };
  if (axes.includes(undefined)) return get(`${base}/view.json`, { x, y });
  axes.forEach((axis, side) => {
    if (!axis.whole) Object.assign(asked, { [FROM[side]]: axis.text(axis.first), [TO[side]]: axis.text(axis.last) });
  });
  if (isMap(x, y)) asked.bins = MAP;
  const [axis] = axes, labels = axis.category && !y;
  if (labels) asked.bins = MOST;
  let seen = labels && axis.cells > MOST ? await inParts(base, asked, axis) : await get(`${base}/view.json`, asked);
  while (served && isMap(x, y) && asked.bins > COARSE && noisy(seen)) {
    asked.bins /= 2;
    seen = await get(`${base}/view.json`, asked);
  }
  axes.forEach((each, side) => { each.units = seen.axes[side].units; });
  return { seen, axes, asked, bins: axes.map((each, side) => binned(each, seen.axes[side])) };
}

/** Thousands of labels, in several answers that are put together. */
async function inParts(base, asked, axis) {
  let all = null;
  for (let first = axis.first; first <= axis.last; first += MOST) {
    const part = await get(`${base}/view.json`, { ...asked, from: axis.text(first), to: axis.text(Math.min(axis.last, first + MOST - 1)) });
    all ??= { ...part, values: [], half: [], error: [], small: [], axes: [{ ...part.axes[0], lows: [], highs: [] }] };
    ["values", "half", "error", "small"].forEach((key) => all[key].push(...part[key]));
    ["lows", "highs"].forEach((key) => all.axes[0][key].push(...part.axes[0][key]));
  }
  return all;
}

/** The bins of one column as entries of a list. */
export const items = (axis, bins, { values, half, small }) =>
  bins.map((cells, place) => ({ name: axis.span(cells), cells, value: values[place], half: half[place], small: small[place] }));

/** The results of some work on each of many, a few at a time. */
export async function few(many, work, most = 4) {
  const waiting = [...many.entries()], done = [];
  await Promise.all(Array.from({ length: most }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) done[next[0]] = await work(next[1], next[0]);
  }));
  return done;
}
