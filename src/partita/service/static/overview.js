// What there is, and what one release is.

import { asking } from "./answer.js";
import { download, get } from "./api.js";
import { count, plusMinus } from "./axis.js";
import { div, facts, fill, h, here, p, section, show, snippet } from "./dom.js";
import { triangle } from "./matrix.js";
import { still } from "./labels.js";
import { Frame, bars } from "./plot.js";
import { isMap, items, look } from "./seen.js";
import { exact, promise, short } from "./words.js";

const FEW = 3;
const list = (names) => names.join(", ").replace(/, (?=[^,]*$)/, " and ");

export async function catalogue() {
  here([], "/index.json");
  const { releases, streams } = await get("/index.json");
  show(h("h1", "Numbers about many, little about anyone"),
    p("lead", "Each was published once, with noise that protects the people in it. Ask as you like: every answer has its error, and none costs privacy."),
    section("Releases", releases.length ? h("ul", { class: "cards" }, releases.map((each) => card("release", each, releaseWords)))
      : h("p", "No releases yet: put .release.parquet files into the folder that is served.")),
    streams.length > 0 && section("Streams", h("ul", { class: "cards" }, streams.map((each) => card("stream", each, streamWords)))));
}

function card(what, entry, words) {
  if (entry.state !== "ready") return h("li", { class: "card" }, h("h3", entry.name), p("warn", `This file is damaged. Whoever runs the service can replace it.`));
  const [said, fine] = words(entry);
  return h("li", h("a", { class: "card", href: `/${what}s/${entry.name}` }, h("h3", entry.name), h("p", said), p("fine", fine)));
}

const releaseWords = ({ columns, dataset, day, guarantee }) =>
  [columns.length ? `Counts by ${list(columns)}.` : "Sums, or answers to queries.", [dataset, day, short(guarantee)].filter(Boolean).join(" · ")];

const streamWords = ({ last, period_seconds: seconds, guarantee }) => [
  !last ? "Nothing published yet." : last.values ? `${Object.keys(last.values).length} running counts.` : `About ${count(last.value)} after ${count(last.period)} periods.`,
  `every ${duration(seconds)} · ${short(guarantee)}`];

export function duration(seconds) {
  const [unit, length] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, each]) => seconds % each === 0) ?? ["second", 1];
  return seconds === length ? unit : `${count(seconds / length)} ${unit}s`;
}

export function promised(guarantee, about, more = []) {
  const { title, sentences, rows } = promise(guarantee, about);
  return h("section", { class: "promise" }, h("h2", title), sentences.map((words) => h("p", words)), facts([...rows, ...more]));
}

export async function release(name) {
  const base = `/releases/${name}`;
  here([[name, base]], `${base}.json`);
  const about = await get(`${base}.json`), { columns, views, dataset, day, version, total, report, citation } = about;
  const matrix = dependent(base, about.links.dependence); // asked for first: pictures of many columns wait in a queue
  show(h("h1", name),
    p("lead", `${total ? `About ${count(total.value)} rows (${plusMinus(total.half)})` : "Published"}${dataset ? ` of the dataset ${dataset}` : ""}, made on ${day} with Partita ${version}.`),
    columns.length > 0 && section("Look at it", h("ul", { class: "cards" }, columns.map((column) => picture(base, columns, column))), matrix, together(base, views)),
    columns.length > 0 && asking(base, columns),
    promised(about.guarantee, about),
    section("How it was made", facts(making(about))),
    section("Take it with you",
      h("ul", { class: "chips" }, [["The release itself", "file", "release.parquet"], ["Report", "report.txt", "txt"], ["Citation", "citation.bib", "bib"], ["1,000 made-up rows", "synthesize.csv?rows=1000", "csv"]]
        .map(([words, path, ending]) => h("li", download(words, `${base}/${path}`, `${name}.${ending}`)))),
      h("details", h("summary", "Report and citation"), p("report", report), snippet("BibTeX", citation))));
}

function picture(base, columns, column) {
  const sketch = div("mini"), under = p("fine");
  look(base, columns, { x: column.name }, 40).then(({ seen, axes: [axis], bins: [bins] }) => {
    const frame = new Frame(240, 64, { left: 0, right: 0, top: 2, bottom: 0 });
    sketch.append(axis.category ? still(items(axis, bins, seen).sort((one, other) => other.value - one.value), FEW) : frame.svg(null, bars(frame, axis, bins, seen)));
    under.textContent = axis.category ? labelWords(axis.size) : `${axis.span([axis.first, axis.last])}${axis.whole ? "" : ", where nearly all rows are"}`;
  }, () => sketch.remove());
  return h("li", h("a", { class: "card", href: `${base}/view?${new URLSearchParams({ x: column.name })}` }, h("h3", column.name), sketch, under));
}

const labelWords = (size) => (size > FEW ? `and ${size - FEW} more labels` : `${size} labels`);

/** A place for the matrix of a table release, which comes later. */
function dependent(base, link) {
  const place = h("div");
  if (link) get(link).then((found) => fill(place, triangle(base, found)), ({ message }) => fill(place, p("warn", `Which columns depend on each other is not known: ${message}`)));
  return link && place;
}

function together(base, views) {
  const pairs = views.filter(({ view, columns, mechanism }) => mechanism !== "graph" && view === columns.join(" x ")).flatMap(({ columns }) => columns.flatMap((x, place) => columns.slice(place + 1).map((y) => new URLSearchParams(isMap(y, x) ? { x: y, y: x } : { x, y }).toString())));
  return pairs.length > 0 && [h("p", "Together, as heat maps:"), h("ul", { class: "chips" }, pairs.map((query) =>
    h("li", h("a", { href: `${base}/view?${query}` }, [...new URLSearchParams(query).values()].join(" and ")))))];
}

const making = ({ views, error, recorded, guarantee }) => [
  ...views.map(({ view, mechanism, epsilon, rho, why }) => [view, mechanism === "imported" ? why : `By the mechanism ${mechanism}${rho ? `, with rho ${exact(rho)}` : epsilon ? `, with epsilon ${exact(epsilon)}` : ""}.`]),
  error?.bound && ["Worst case", `Answers are usually far closer, and each comes with its own error. For proofs there is one bound for all questions at once, whatever the data: with ${100 * (1 - error.beta)}% probability no range or box is off by more than ${count(Math.ceil(error.bound))} rows.`],
  guarantee && ["Cost", `${guarantee.rho ? `Rho ${exact(guarantee.rho)}` : `Epsilon ${guarantee.epsilon}`}, ${recorded ? "" : "not "}recorded in a ledger.`],
];
