// Groups: the same chart for each label or range of another column, on one scale, and a table of them.

import { get } from "./api.js";
import { count, percent, plusMinus, written } from "./axis.js";
import { button, div, fill, fitted, h, p, section, table } from "./dom.js";
import { longest, still } from "./labels.js";
import { measure, measured, summable } from "./measures.js";
import { Frame, along, bars, ceiling, grid } from "./plot.js";
import { served } from "./place.js";
import { few, items, look } from "./seen.js";

const GROUPS = 12, SMALL = 30, LABELS = 6;

/** The column of a split by calendar units, such as month(when). */
const timed = (columns, split) => !columns.some(({ name }) => name === split) && split.match(/^\w+\((.*)\)$/)?.[1];

/** Groups of a column: its labels, the most frequent first, or its ranges in order; `rest` are conditions on others. */
async function groups(base, columns, { split, filter, confidence }) {
  const time = timed(columns, split);
  if (time) {
    const found = await get(`${base}/count_by`, { by: split, where: filter, confidence });
    return found.groups.map(({ key: [name], value, half }) => ({ name, value, half, rest: filter, said: `${time} = ${name}` }));
  }
  const { seen, axes: [axis], bins: [bins] } = await look(base, columns, { x: split, where: filter, confidence }, GROUPS);
  const rest = seen.filter, chosen = seen.selection.values[split], all = items(axis, bins, seen).filter(({ name }) => chosen?.includes(name) ?? true)
    .map((item) => ({ ...item, rest, said: axis.category ? axis.among([item.name]) : axis.said(item.cells) }));
  return axis.category ? all.sort((one, other) => other.value - one.value) : all;
}

/** A section with a small chart for each group. `open` shows a group by itself. */
export function multiples(base, about, state, open) {
  const { split, confidence, x } = state, { columns } = about, [summed] = summable(about).filter((name) => name !== split);
  const charts = div("multiples"), more = div("buttons"), listed = h("div");
  let all = [], shown = [], same = true;
  const draw = () => fill(charts, shown.map((each) => small(each, same ? Math.max(...shown.map((other) => other.top)) : each.top)));

  function small({ group, seen, axes: [axis], bins: [bins], means }, top) {
    const picture = div("figure"), within = items(axis, bins, seen).sort((one, other) => other.value - one.value);
    if (axis.category) picture.append(still(within, LABELS, top));
    else {
      fitted(picture, (width) => {
        const frame = new Frame(width, 150, { left: 44, right: 6 });
        fill(picture, frame.svg(`${x} where ${group.said}`, grid(frame, 0, top), bars(frame, axis, bins, seen, null, top), along(frame, axis)));
      });
    }
    return h("div", h("h3", !served ? group.name : button(group.name, () => open(group.said), { class: "plain", "aria-label": `Only ${group.name}` })),
      p("fine", `${count(group.value)} ${plusMinus(group.half)} rows`, means?.known && !(means.mean instanceof Error) && ` · mean of ${summed} ${measured(means.mean)}`), picture);
  }

  async function show() {
    const next = all.slice(shown.length, shown.length + GROUPS);
    fill(more, p("fine", "Reading…"));
    shown.push(...await few(next, async (group) => {
      const where = [group.rest, group.said].filter(Boolean).join(" and "), found = await look(base, columns, { ...state, where }, SMALL);
      const means = summed && await measure(base, summed, where, confidence);
      return { group, ...found, means, top: found.axes[0].category ? longest(items(found.axes[0], found.bins[0], found.seen)) : ceiling(found.seen) };
    }));
    draw();
    const rest = all.length - shown.length;
    fill(more, rest > 0 && button(`Show ${Math.min(rest, GROUPS)} more of ${written(all.length)}`, show));
    const heads = [split, "rows", "error", ...(summed ? [`mean of ${summed}`, `sum of ${summed}`] : [])];
    const rows = all.map((group, place) => [group.name, count(group.value), plusMinus(group.half), ...(summed ? ["mean", "sum"].map((kind) => {
      const found = shown[place]?.means?.[kind];
      return found && !(found instanceof Error) ? measured(found) : "";
    }) : [])]);
    fill(listed, h("details", h("summary", `All ${written(all.length)} groups as a table`), table(`Rows by ${split}`, heads, rows)));
  }

  groups(base, columns, state).then((found) => { all = found.map((group) => ({ ...group })); return show(); })
    .catch(({ message }) => fill(charts, p("warn", `These groups cannot be shown: ${message}`)));
  return section(`By ${split}`, h("label", h("input", { type: "checkbox", checked: true, onchange: ({ target }) => { same = target.checked; draw(); } }), " One scale for all"),
    p("fine", `Errors have ${percent(confidence)} confidence.${columns.find(({ name }) => name === split)?.labels ? " The order is that of estimates: groups whose errors overlap may stand in another." : ""}`), charts, more, listed);
}
