// The field of conditions: an example, a list of columns, and a message beside it where one is mistyped.

import { Refused } from "./api.js";
import { Axis, word } from "./axis.js";
import { fill, h, say } from "./dom.js";

/** A condition on a column that makes sense for it. */
function example(column) {
  const axis = new Axis(column, ...(column.window ?? []));
  if (axis.category) return axis.among([axis.text(0)]);
  return `${word(axis.name)} >= ${word(axis.text(Math.floor((axis.first + axis.last) / 2)))}`;
}

/** The field; `changed` is asked to apply new conditions, and what it refuses is said here. */
export function conditions(value, columns, changed, complaint) {
  const message = h("p", { class: "warn fine", id: "mistyped", role: "alert" });
  const field = h("input", { value: complaint?.where ?? value, id: "where", autocomplete: "off", spellcheck: "false", "aria-describedby": "mistyped",
    placeholder: columns.length ? `for example ${example(columns[0])}` : "no other column goes with this one", onchange: apply });
  const add = columns.length > 0 && h("select", { "aria-label": "Add a condition", onchange: ({ target }) => {
    const column = columns.find(({ name }) => name === target.value), written = example(column);
    target.value = "";
    field.value = [field.value.trim(), written].filter(Boolean).join(" and ");
    field.focus();
    field.setSelectionRange(field.value.length - written.length, field.value.length);
    say(`${written} added; press Enter to apply`);
  } }, h("option", { value: "" }, "+ column"), columns.map(({ name }) => h("option", { value: name }, name)));

  async function apply() {
    refuse("");
    try {
      await changed(field.value.trim());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refuse(error.message);
    }
  }
  function refuse(words) {
    fill(message, words);
    field.setAttribute("aria-invalid", String(Boolean(words)));
  }
  if (complaint) refuse(complaint.words);
  return h("div", { class: "pick wide" }, h("label", { for: "where" }, "Only rows where"), h("div", { class: "joined" }, field, add), message);
}
