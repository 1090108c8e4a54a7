// Sums and means of the rows that are selected.

import { get } from "./api.js";
import { bounded, percent } from "./axis.js";
import { facts, fill, h, p } from "./dom.js";

const NUMBERS = ["integer", "real"];

/** The columns whose sums a release may tell: those that were summed, and numbers in a table. */
export const summable = ({ sums, columns, links }) => [...new Set([...sums.map(({ column }) => column),
  ...columns.filter(({ kind }) => links.dependence && NUMBERS.includes(kind)).map(({ name }) => name)])];

export const measured = ({ value, interval }) => (value === null ? "not determinable" : bounded(value, interval).join(" "));

/** The mean and the sum, or why there are none. */
export async function measure(base, column, where, confidence) {
  const ask = (kind) => get(`${base}/${kind}`, { column, where, confidence }).catch((error) => error);
  const [mean, sum] = [await ask("mean"), await ask("sum")];
  return { mean, sum, known: !(mean instanceof Error) || !(sum instanceof Error) };
}

/** A field to choose a column, and its sum and mean under it. */
export class Measures {
  constructor(base, about) {
    Object.assign(this, { base, columns: summable(about), asked: 0 });
    [this.column] = this.columns;
    this.answer = h("div");
    this.element = this.columns.length > 0 && h("div", { class: "specials" }, h("label", { class: "pick" }, "Sum and mean of",
      h("select", { onchange: ({ target }) => { this.column = target.value; this.show(this.where, this.confidence); } },
        this.columns.map((value) => h("option", { value }, value)))), this.answer);
  }

  async show(where, confidence) {
    if (!this.column) return;
    Object.assign(this, { where, confidence });
    const turn = this.asked += 1, { mean, sum, known } = await measure(this.base, this.column, where, confidence);
    if (turn !== this.asked) return;
    const fine = (known && (mean.covers ?? sum.covers)?.text) || null;
    fill(this.answer, known ? facts([["mean", mean], ["sum", sum]].filter(([, each]) => !(each instanceof Error)).map(([name, each]) => [name, measured(each)]))
      : p("fine", `Not for these rows: ${mean.message}`), known && p("fine", `With ${percent(confidence)} confidence${fine ? `; ${fine}` : ""}.`));
  }
}
