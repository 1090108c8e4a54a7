// Two columns together: a map, and each column given the range of the other.

import { h, p, s } from "./dom.js";
import { count } from "./axis.js";
import { Frame, along, bars, binned, upward } from "./plot.js";
import { isMap } from "./seen.js";

const TALLEST = 560, SWATCH = 22, SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1];

const dark = () => parseInt(getComputedStyle(document.body).color.slice(4), 10) > 128;

/** Even steps of lightness; grey where noise dominates. */
const colour = (share, small) =>
  `oklch(${dark() ? 23 + 67 * share : 97 - 60 * share}% ${small ? 0.004 : 0.02 + 0.1 * Math.sqrt(share)} ${200 - 20 * share})`;

/** How high a picture of places is for its width: a kilometre is as long to the north as to the east. */
function proportion([x, y]) {
  const [west, east, south, north] = [x.number(x.first), x.number(x.last + 1), y.number(y.first), y.number(y.last + 1)];
  const degrees = west >= -180.1 && east <= 360.1 && south >= -90.1 && north <= 90.1;
  return (north - south) / ((east - west) * (degrees ? Math.max(0.1, Math.cos(((south + north) / 2) * Math.PI / 180)) : 1));
}

/** Of the map, of the bars above it and of those beside it. */
export function frames(width, axes) {
  const [, { category, column }] = axes, longest = category ? Math.max(...column.labels.map((label) => label.length)) : 0;
  const right = width < 560 ? 54 : 118, left = Math.max(62, Math.min(width / 3.5, 7 * longest + 16));
  let height = Math.min(440, Math.max(230, 0.6 * width)) + 96;
  if (isMap(...axes.map(({ name }) => name))) {
    const high = Math.min(proportion(axes) * (width - left - right), TALLEST);
    [width, height] = [left + right + high / proportion(axes), high + 96];
  }
  return {
    main: new Frame(width, height, { left, right, top: 62 }),
    above: new Frame(width, 56, { left, right, top: 4, bottom: 0 }),
    beside: new Frame(height, right - 12, { left: 34, right: 62, top: 0, bottom: 0 }),
  };
}

export function heat({ main, above, beside }, axes, seen, ranges) {
  const [across, up] = axes.map((axis, side) => binned(axis, seen.axes[side])), { x, y } = seen.conditional;
  const ticks = axes[1].ticks(main.height / (axes[1].category ? 13 : 40)).map(({ cell, words }) => [axes[1].at(cell + (axes[1].cells < 100) / 2), words]);
  return [
    s("image", { x: main.left, y: main.top, width: main.width, height: main.height, preserveAspectRatio: "none", href: painted(seen) }),
    along(main, axes[0]), upward(main, ticks), bars(above, axes[0], across, x, ranges?.[0]),
    s("g", { transform: `matrix(0 -1 -1 0 ${main.outer.width - 4} ${main.outer.height})` }, bars(beside, axes[1], up, y, ranges?.[1])),
  ];
}

/** Never below the largest error: where nobody is, nothing stands out. */
const strongest = ({ values, half }) => Math.max(1, ...values.flat(), ...half.flat());

function painted(seen) {
  const { values, small } = seen, [width, height] = [values.length, values[0].length], top = strongest(seen);
  const canvas = h("canvas", { width, height }), pen = canvas.getContext("2d");
  values.forEach((column, i) => column.forEach((value, j) => {
    pen.fillStyle = colour(Math.max(0, value / top), small[i][j]);
    pen.fillRect(i, height - 1 - j, 1, 1);
  }));
  return canvas.toDataURL();
}

/** What the colours and the bars mean. */
export function legend(seen) {
  const swatches = (shares, small) => s("svg", { width: SWATCH * shares.length, height: 12, "aria-hidden": "true" },
    shares.map((share, place) => s("rect", { x: SWATCH * place, width: SWATCH, height: 12, fill: colour(share, small) })));
  return p("fine", "0 ", swatches(SHARES), ` ${count(strongest(seen))} rows in a field, `, swatches([0.4], true),
    ` where noise dominates. Above: ${seen.x} in the range of ${seen.y}; beside: ${seen.y} in that of ${seen.x}.`);
}
