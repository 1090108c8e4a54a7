// Which columns of a table depend on each other: a field for each pair, and its kind of evidence.

import { address } from "./api.js";
import { written } from "./axis.js";
import { div, h, p, s } from "./dom.js";

const CELL = 28, STRONG = 0.5, LETTER = 7.2, LONGEST = 24, STEPS = [0, 0.25, 0.5, 0.75, 1];
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const cut = (words) => (words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words);
const kind = (basis) => (basis === "measured" ? "measured together" : "inferred by a model");
const square = (share, more) => s("rect", { class: "bar", width: CELL - 3, height: CELL - 3, "fill-opacity": Math.min(1, share), ...more });

/** The lower half of the matrix, names along its diagonal. Arrows move, Enter opens the heat map. */
export function triangle(base, { columns, matrix: values, basis }) {
  const said = p("fine readout"), rows = columns.map((y, i) => columns.slice(0, i).map((x, j) => pair(i, j, x, y)));
  function pair(i, j, x, y) {
    const words = `${x} and ${y}: dependence ${written(values[i][j], 2)}, ${kind(basis[i][j])}`, tell = () => { said.textContent = words; };
    return s("a", { href: address(`${base}/view`, { x, y }), class: "pair", "aria-label": words, tabindex: i === 1 ? 0 : -1, transform: `translate(${CELL * j} ${CELL * i})`,
      onfocus: tell, onpointerenter: tell, onkeydown: (event) => move(event, i, j) },
    square(values[i][j] / STRONG), basis[i][j] === "measured" && s("circle", { cx: (CELL - 3) / 2, cy: (CELL - 3) / 2, r: 4 }));
  }
  function move(event, i, j) {
    const [down, right] = MOVES[event.key] ?? [], to = { Home: rows[i][0], End: rows[i][i - 1] }[event.key] ?? rows[i + down]?.[j + right];
    if (!to) return;
    event.preventDefault();
    rows[i][j].setAttribute("tabindex", -1);
    to.setAttribute("tabindex", 0);
    to.focus();
  }
  const names = columns.map((name, i) => s("text", { x: CELL * i + 5, y: CELL * i + 17 }, cut(name)));
  const width = Math.max(...columns.map((name, i) => CELL * i + 12 + LETTER * cut(name).length)), height = CELL * columns.length;
  return div("matrix", h("p", "Which columns depend on each other, by the model; each pair leads to its heat map:"),
    div("across", s("svg", { width, height, viewBox: `-2 -2 ${width + 2} ${height + 2}`, role: "group", "aria-label": "Dependence of columns" }, s("g", { class: "axis", "aria-hidden": "true" }, names), rows)),
    said, legend());
}

const legend = () => p("fine", "0 ", s("svg", { width: 20 * STEPS.length, height: 14, "aria-hidden": "true" }, STEPS.map((share, place) => square(share, { x: 20 * place + 1, y: 1, width: 17, height: 12 }))),
  ` ${STRONG} and more: the share of rows that would have to change for two columns to be independent. A dot: they were counted together, with noise; others are inferred.`);
