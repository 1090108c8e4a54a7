// The answer to any question: a number, a value of a column, or rows as bars; and a field to ask in.

import { Refused, address, get } from "./api.js";
import { bounded, count, figure, percent, word, written } from "./axis.js";
import { button, div, fill, h, p, say, section, snippet, table } from "./dom.js";
import { still } from "./labels.js";
import { evidence } from "./words.js";

const NUMBERS = ["count", "value", "error", "half", "small", "share", "low", "high"], UNKNOWN = "not determinable";

/** A row of a table: what it is about, and its number. */
function row(each) {
  const ends = "low" in each ? [each.low === each.high ? each.low : `${each.low} to ${each.high}`] : [];
  const about = Object.entries(each).filter(([key]) => !NUMBERS.includes(key)).map(([, value]) => value);
  const unit = "share" in each && !("count" in each) ? (value) => percent(value, 2) : count;
  return { ...each, name: [...about, ...ends, ..."count" in each && "value" in each ? [each.value] : []].join(", "), value: each.count ?? each.share ?? each.value, unit };
}

const UNITS = { count: figure, sum: figure, mean: figure, share: (value, half, error) => `${figure(100 * value, 100 * half, error)}%` };

/** A group with its number and the ends of its interval. */
function group({ key, value, low, high }, unit) {
  const name = key.map((each) => each ?? "(null)").join(", ");
  if (value === null) return { name, value: 0, said: [UNKNOWN, ""] };
  return { name, value, half: low === null || high === null ? null : (high - low) / 2, ends: [low, high], said: bounded(value, { low, high }, unit) };
}

/** The elements that show an answer; of many rows the first. */
export function answered(found, most = Infinity) {
  const { groups, interval, value, statistic, by } = found, rows = groups ?? Object.values(found).find(Array.isArray);
  const rest = (found.number ?? rows?.length) - Math.min(most, rows?.length), notes = [found.ranking, found.about, found.note, found.covers?.text].filter(Boolean);
  const more = [rest > 0 && p("fine", `And ${written(rest)} more.`), evidence(found.basis ?? groups?.[0]?.basis ?? ""), ...notes.map((words) => p("fine", words))];
  const end = (each, about) => (typeof each === "number" ? figure(each, about) : each ?? "anything");
  if (groups && UNITS[statistic]) return [still(groups.map((each) => group(each, UNITS[statistic])), most), ...more];
  if (groups) {
    const lines = groups.slice(0, most).map((each) => [each.key.map((name) => name ?? "(null)").join(", "), each.value === null ? UNKNOWN : end(each.value, each.half), end(each.low, each.half), end(each.high, each.half)]);
    return [table(found.question, [by.join(", "), statistic, "from", "to"], lines), ...more];
  }
  if (rows) return [still(rows.map(row), most), ...more];
  const [shown, error] = typeof value === "number" ? bounded(value, interval) : [String(value ?? UNKNOWN), ""], wide = (interval?.high - interval?.low) / 2;
  return [p("big", h("strong", shown), error.startsWith("±") && ` ${error}`), interval && h("p", `Between ${end(interval.low, wide)} and ${end(interval.high, wide)}.`), ...more];
}

/** Questions that these columns can be asked. */
function examples(columns) {
  const first = (...kinds) => columns.find(({ kind }) => kinds.includes(kind)), [label, time, number] = [first("category"), first("date", "timestamp"), first("integer", "real")].map((each) => each && word(each.name));
  return [label && `count by ${label} order by count desc limit 10`, time && `count by month(${time})`, number && `median of ${number}`, number && label && `median of ${number} by ${label}`].filter(Boolean);
}

/** A section with a field for any question; the address keeps what was asked. */
export function asking(base, columns) {
  const message = h("p", { class: "warn fine", id: "misread", role: "alert" }), result = h("div", { class: "answer" });
  const field = h("input", { id: "ask", autocomplete: "off", spellcheck: "false", "aria-describedby": "misread", placeholder: examples(columns)[0] ?? "count" });
  async function ask(q) {
    field.value = q;
    fill(message, "");
    history.replaceState(null, "", address(base, { ask: q }));
    try {
      const found = await get(`${base}/ask`, { q });
      fill(result, h("h3", found.question), answered(found, 60),
        snippet("Frame", `<iframe src="${location.origin}${address(`${base}/embed`, { question: q })}" title="${q.replaceAll('"', "&quot;")}" width="640" height="420"></iframe>`));
      say("Answered");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      fill(message, error.message);
    }
    field.setAttribute("aria-invalid", String(Boolean(message.textContent)));
  }
  const onsubmit = (event) => { event.preventDefault(); if (field.value.trim()) ask(field.value.trim()); };
  const given = new URLSearchParams(location.search).get("ask");
  if (given) ask(given);
  return section("Ask it", h("form", { onsubmit }, h("div", { class: "pick wide" }, h("label", { for: "ask" }, "A question, in the words of the query language"),
    h("div", { class: "joined" }, field, h("button", { class: "main" }, "Ask")))), message,
  div("tools", examples(columns).map((q) => button(q, () => ask(q)))), result);
}
