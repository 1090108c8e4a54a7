// One chart for a frame in another page: a title, the picture, its error, and a link back.

import { answered } from "./answer.js";
import { address, get } from "./api.js";
import { count, percent, plusMinus } from "./axis.js";
import { div, fill, fitted, h, p, show } from "./dom.js";
import { frames, heat, legend } from "./heat.js";
import { still } from "./labels.js";
import { Frame, along, bars, ceiling, grid } from "./plot.js";
import { items, look } from "./seen.js";
import { evidence } from "./words.js";

const [, base] = location.pathname.match(/^(\/releases\/[^/]+)\/embed$/), name = base.split("/").at(-1);
const { title, question, ...state } = Object.fromEntries(new URLSearchParams(location.search)), LABELS = 15;
const confidence = Number(state.confidence ?? 0.95);

function framed(words, where, ...content) {
  document.title = words;
  show(h("h1", words), ...content.flat(), p("fine", `Estimates with noise for privacy; errors have ${percent(confidence)} confidence. `,
    h("a", { href: where, target: "_blank", rel: "noopener" }, `Ask ${name} yourself`)));
}

/** A chart of one column or two. */
async function chart() {
  const { columns } = await get(`${base}.json`), { seen, axes, bins } = await look(base, columns, { ...state, x: state.x ?? columns[0].name });
  const [x, y] = axes, picture = div("figure"), words = title ?? `Rows by ${axes.map((axis) => axis.name).join(" and ")}${state.where ? ` where ${state.where}` : ""}`;
  if (x.category && !y) picture.append(still(items(x, bins[0], seen).sort((one, other) => other.value - one.value), LABELS));
  else {
    fitted(picture, (width) => {
      const parts = y ? frames(width, axes) : { main: new Frame(width, Math.max(160, Math.min(340, innerHeight - 190))) }, { main } = parts, top = ceiling(seen);
      fill(picture, main.svg(words, y ? heat(parts, axes, seen, null) : [grid(main, 0, top), bars(main, x, bins[0], seen), along(main, x)]));
    });
  }
  const { value, half } = seen.selection.count, rest = x.category && !y ? seen.values.length - LABELS : 0;
  framed(words, address(`${base}/view`, state), picture, y && legend(seen), rest > 0 && p("fine", `And ${rest} more labels.`),
    p("fine", `${count(value)} ${plusMinus(half)} rows${state.where ? " in the selection" : ""}.`), evidence(seen.basis));
}

async function answer() {
  const found = await get(`${base}/ask`, { q: question, confidence });
  framed(title ?? found.question, base, ...answered(found));
}

(question ? answer() : chart()).catch(({ message }) => framed("No chart", address(base), p("warn", message)));
