// Pictures of one line of counts: bars with a band, the share up to each value, axes.

import { s } from "./dom.js";
import { brief, percent, round } from "./axis.js";

/** The rectangle that a picture is drawn in; x and y take shares of it. */
export class Frame {
  constructor(width, height, { left = 48, right = 12, top = 12, bottom = 34 } = {}) {
    Object.assign(this, { outer: { width, height }, left, top, right: width - right, bottom: height - bottom });
    Object.assign(this, { width: this.right - left, height: this.bottom - top });
  }

  x(share) { return this.left + this.width * share; }
  y(share) { return this.bottom - this.height * share; }

  svg(label, ...children) {
    const { width, height } = this.outer;
    return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: label ? "group" : null, "aria-label": label }, children);
  }
}

const hidden = (name, ...children) => s("g", { class: name, "aria-hidden": "true" }, children);
const cut = (words, most) => (words.length > most ? `${words.slice(0, Math.max(1, most - 1))}…` : words);

export function along(frame, axis) {
  const ticks = axis.ticks(Math.max(2, frame.width / (axis.category ? 40 : 76)));
  const room = Math.floor(frame.width / ticks.length / 7), middle = axis.cells < frame.width / 3 ? 0.5 : 0;
  return hidden("axis", s("path", { d: `M${frame.left} ${frame.bottom}H${frame.right}` }), ticks.map(({ cell, words }) => {
    const x = frame.x(axis.at(cell + middle)), said = cut(words, room);
    return [s("path", { d: `M${x} ${frame.bottom}v4` }), s("text", { x: Math.min(x, frame.outer.width - 3.6 * said.length), y: frame.bottom + 18, "text-anchor": "middle" }, said)];
  }));
}

/** Ticks on the left: shares of the height, and words; a grid has lines across. */
export const upward = (frame, ticks, grid) => hidden(grid ? "axis grid" : "axis", ticks.map(([share, words]) => [
  s("path", { d: `M${frame.left} ${frame.y(share)}h${grid ? frame.width : -4}` }),
  s("text", { x: frame.left - 8, y: frame.y(share) + 4, "text-anchor": "end" }, cut(words, Math.max(9, Math.floor((frame.left - 10) / 6.6))))]));

export const grid = (frame, low, high, written = brief) =>
  upward(frame, round(low, high, Math.max(3, frame.height / 50)).map((value) => [(value - low) / (high - low), written(value)]), true);

export const binned = (axis, { lows, highs }) => lows.map((low, place) => [axis.cell(low), axis.cell(highs[place])]);

/** What a picture of counts must reach up to; no error may dwarf them. */
export const ceiling = ({ values, half }) => 1.04 * Math.max(1, ...values.map((value, place) => value + Math.min(half[place], Math.max(1, value))));

const held = (value) => Math.min(1, Math.max(0, value));

/** Bars with a band or whiskers for the error; pale outside of the chosen cells. */
export function bars(frame, axis, bins, { values, half, small = [] }, chosen, top = ceiling({ values, half })) {
  const gap = axis.category ? 0.14 : 0.05, marks = [], error = [];
  bins.forEach(([low, high], place) => {
    const apart = gap * (high + 1 - low), x = frame.x(axis.at(low + apart)), to = frame.x(axis.at(high + 1 - apart)), middle = (x + to) / 2;
    const [from, y, up] = [-1, 0, 1].map((sign) => frame.y(held((values[place] + sign * half[place]) / top)));
    const kind = `bar${chosen && (high < chosen[0] || low > chosen[1]) ? " out" : ""}${small[place] ? " small" : ""}`;
    marks.push(s("rect", { class: kind, x, y, width: Math.max(0.5, to - x), height: frame.bottom - y }));
    error.push(axis.category ? `M${middle} ${from}V${up}m-5 0h10M${middle - 5} ${from}h10` : `M${x} ${up}H${to}V${from}H${x}Z`);
  });
  return hidden("", marks, s("path", { class: axis.category ? "whisker" : "band", d: error.join("") }));
}

export function line(frame, points) {
  const path = (each, name) => each.map((point) => `${frame.x(point.x).toFixed(1)} ${frame.y(held(point[name])).toFixed(1)}`);
  const known = points.filter(({ sure = true }) => sure);
  return hidden("", known.length > 0 && s("path", { class: "band", d: `M${[...path(known, "high"), ...path(known, "low").reverse()].join("L")}Z` }),
    s("path", { class: "line", d: `M${path(points, "value").join("L")}` }));
}

/** The counts of another release over the bars of this one, as steps with a band. */
export function steps(frame, axis, bins, { values, half }, top) {
  const points = bins.flatMap(([low, high], place) => [low, high + 1].map((cell) => {
    const at = (value) => value / top;
    return { x: axis.at(cell), value: at(values[place]), low: at(values[place] - half[place]), high: at(values[place] + half[place]) };
  }));
  return s("g", { class: "other" }, line(frame, points));
}

/** Which share of the rows does not exceed each value, with quartiles. */
export function cumulative(frame, axis, { at, share, low, high }, quantiles) {
  const points = at.map((text, place) => ({ x: axis.at(axis.cell(text) + 1), value: share[place], low: low[place], high: high[place] }));
  const marks = quantiles.map(({ q, value }) => [axis.at(axis.cell(value) + 0.5), q]).filter(([x]) => x >= 0 && x <= 1);
  return [grid(frame, 0, 1, percent), along(frame, axis), line(frame, points.filter(({ x }) => x >= 0 && x < 1.001)),
    hidden("quantiles", marks.map(([x, q]) => [s("path", { d: `M${frame.left} ${frame.y(q)}H${frame.x(x)}V${frame.bottom}` }), dot(frame, x, q)]))];
}

export const dot = (frame, x, y) => s("circle", { cx: frame.x(x), cy: frame.y(held(y)), r: 4 });
