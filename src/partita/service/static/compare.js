// A second release beside the first one: the same question, both curves, and their difference.

import { get } from "./api.js";
import { Axis, brief, count, percent, plusMinus } from "./axis.js";
import { div, fill, fitted, h, p, s, section, table } from "./dom.js";
import { Frame, along, bars, ceiling, grid, line } from "./plot.js";
import { items, look } from "./seen.js";

const unknown = (...numbers) => numbers.some((each) => each === null);
const apart = (one, other) => ({ value: unknown(one.value, other.value) ? null : one.value - other.value, half: unknown(one.half, other.half) ? null : Math.hypot(one.half, other.half) });
const signed = (value) => (value > 0 ? `+${count(value)}` : count(value));
export const difference = (one, other) => { const { value, half } = apart(one, other); return `${signed(value)} ${plusMinus(half)}`; };

/** The other release, asked the same; `alike` if its bins are those of the first one. */
export async function beside(name, { checksum }, state, axes) {
  const base = `/releases/${name}`, confidence = Number(state.confidence ?? 0.95);
  const ask = async (where, sure, mine) => {
    const answer = await get(`${base}/count`, { where, confidence: sure }).catch((error) => error);
    if (answer instanceof Error) return p("warn", `${name} cannot tell: ${answer.message}`);
    const share = answer.value > 0 ? ` (${mine.value >= answer.value ? "+" : ""}${percent(mine.value / answer.value - 1, 1)})` : "";
    return [p("second", `${name}: ${count(answer.value)} ${plusMinus(answer.half)}`), h("p", `Difference: ${difference(mine, answer)}${share}, with errors taken as independent.`)];
  };
  try {
    const about = await get(`${base}.json`), window = { from: "", to: "" };
    if (about.checksum === checksum) return { name, message: "it is the same release under another name, so there is nothing to compare" };
    if (axes.length > 1) return { name, count: ask };
    const own = about.columns.find((column) => column.name === state.x), theirs = own && new Axis(own), [mine] = axes;
    const alike = theirs && theirs.kind === mine.kind && (mine.category || (theirs.step === mine.step && theirs.origin === mine.origin && theirs.size === mine.size));
    if (alike && !mine.category) Object.assign(window, { from: mine.text(mine.first), to: mine.text(mine.last), range: "full" });
    return { name, alike, count: ask, ...await look(base, about.columns, { ...state, confidence, ...window }) };
  } catch (error) {
    return { name, count: ask, message: error.message };
  }
}

/** A section with the differences bin by bin, or with the other picture where bins are not the same. */
export function differences({ other, name, axes, bins, seen, confidence }) {
  const [axis] = axes, words = `${name} less ${other.name}`;
  if (other.message) return section(words, p("warn", `${other.name} cannot be compared: ${other.message}`));
  if (!other.seen) return null;
  const fine = p("fine", `With ${percent(confidence)} confidence. Each release has noise of its own, so errors are taken as independent.`);
  if (axis.category) return section(words, labels({ other, axis, bins, seen }), fine);
  const picture = div("figure");
  if (!other.alike) {
    fitted(picture, (width) => {
      const frame = new Frame(width, 260), [theirs] = other.axes;
      fill(picture, frame.svg(`Counts of ${other.name}`, grid(frame, 0, ceiling(other.seen)), bars(frame, theirs, other.bins[0], other.seen), along(frame, theirs)));
    });
    return section(other.name, p("fine", `The axis of ${axis.name} is another one there, so it has a picture of its own.`), picture);
  }
  const found = seen.values.map((value, place) => apart({ value, half: seen.half[place] }, { value: other.seen.values[place], half: other.seen.half[place] }));
  const [low, high] = [Math.min(0, ...found.map(({ value, half }) => value - half)), Math.max(1, ...found.map(({ value, half }) => value + half))], at = (value) => (value - low) / (high - low);
  fitted(picture, (width) => {
    const frame = new Frame(width, 270), points = found.flatMap(({ value, half }, place) => [bins[0][place][0], bins[0][place][1] + 1].map((cell) =>
      ({ x: axis.at(cell), value: at(value), low: at(value - half), high: at(value + half) })));
    fill(picture, frame.svg(words, grid(frame, low, high, brief), along(frame, axis), s("path", { class: "zero", d: `M${frame.left} ${frame.y(at(0))}H${frame.right}` }), line(frame, points)));
  });
  return section(words, picture, fine);
}

/** Labels of both, the largest differences first. */
function labels({ other, axis, bins, seen }) {
  const theirs = new Map(items(other.axes[0], other.bins[0], other.seen).map((item) => [item.name, item]));
  const both = items(axis, bins[0], seen).filter(({ name }) => theirs.has(name)).map((item) => ({ item, second: theirs.get(item.name) }));
  const rows = both.sort((one, two) => Math.abs(two.item.value - two.second.value) - Math.abs(one.item.value - one.second.value))
    .map(({ item, second }) => [item.name, `${count(item.value)} ${plusMinus(item.half)}`, `${count(second.value)} ${plusMinus(second.half)}`, difference(item, second)]);
  return table(`Differences by ${axis.name}`, [axis.name, "here", other.name, "difference"], rows);
}
