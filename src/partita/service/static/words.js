// What a guarantee means, in words for everybody.

import { percent, ratio, written } from "./axis.js";
import { p } from "./dom.js";

const WEAK = 5, WEAK_RHO = 2, ANY = 2 ** 53;

function unit({ unit: name, contributions }) {
  const what = { person: "row", user: "event" }[name];
  if (!what) return `one ${name}`;
  const most = contributions >= ANY ? `any number of ${what}s` : contributions > 1 ? `at most ${contributions} ${what}s` : `one ${what}`;
  return `one ${name} with ${most}`;
}

/** e^epsilon, rounded up to three figures. */
function factor(epsilon) {
  if (epsilon > 10) return `e^${epsilon}`;
  const power = 10 ** (2 - Math.floor(Math.log10(Math.exp(epsilon))));
  return written(Math.ceil(Math.exp(epsilon) * power) / power, 2);
}

const EVIDENCE = {
  measured: "Measured: noisy counts of just what is asked for.",
  inferred: "Inferred by a model: nothing was counted of just what is asked for.",
  "order 3+": "Inferred by a model of pairs of columns, which may miss how three or more go together.",
};

/** What an answer rests on, if the release can tell. */
export const evidence = (basis) => basis && p("fine evidence", EVIDENCE[basis]);

/** An exact number, or five digits that are not below it where it is long. */
export const exact = (number) => (String(number).length <= 16 ? number : written(Math.ceil(1e5 * ratio(number)) / 1e5, 5));

const budget = ({ epsilon, rho }) => (rho ? `ρ = ${exact(rho)}` : `ε = ${epsilon}`);

export const short = (guarantee) => (guarantee ? `${budget(guarantee)} for ${unit(guarantee)}` : "no guarantee");

/** A heading, sentences about epsilon, and a list: who is protected, what was taken to be public. */
export function promise(guarantee, { columns, person, views } = {}) {
  if (!guarantee) return { title: "No promise", sentences: ["Made with noise that somebody chose: it protects nobody."], rows: [] };
  const { rho, delta, neighbors, intrusions } = guarantee, value = ratio(guarantee.epsilon), added = neighbors === "add-remove";
  const epsilon = rho ? exact(guarantee.epsilon) : guarantee.epsilon;
  const other = added ? "is in the data" : "has these values or others", but = delta === "0" ? "" : `, but for a probability of ${delta}`;
  const sure = value > 6.9 ? "99.9% or more" : `at most ${percent(Math.ceil(1000 / (1 + Math.exp(-value))) / 1000, 1)}`;
  return {
    title: `What ${budget(guarantee)} means here`,
    sentences: [
      rho && `This is zero-concentrated privacy: ε = ${epsilon}${delta === "0" ? "" : ` at a δ of ${delta}`}, and less at a larger δ.`,
      `Whether or not ${unit(guarantee)} ${other}, the chance of anything that is read here changes by a factor of at most ${factor(value)} (e to the ${epsilon})${but}.`,
      `So whoever knows all about everybody else, and gives it an even chance that this one ${added ? other : "has certain values"}, can be ${sure} sure after reading it.`,
      (rho ? ratio(rho) > WEAK_RHO : value > WEAK) && "That is weak: an epsilon of 1 says much more.",
      views?.some(({ mechanism }) => mechanism === "imported") && "This was declared by whoever imported the counts, and not checked by Partita.",
    ].filter(Boolean),
    rows: [
      ["Protected", `Any ${unit(guarantee).slice(4)}${person ? `; rows belong together by ${person}` : ""}.`],
      ["Neighbours", `Data ${added ? "with and without that one" : "where that one has other values"}.`],
      ["Kept secret", added ? `Every value, who is in the data, and how many ${columns ? "rows" : "events"} there are.` : "Every value; their number counts as known."],
      ["Taken as public", columns ? `Columns, bounds and labels (${columns.map(({ name }) => name).join(", ")}), and how it was made.` : "The settings, the clock, and how many periods have ended."],
      intrusions > 0 && ["Intrusions", "It holds even if somebody looks into the memory."],
      ["Not promised", "What is true of many can be learnt, and is meant to be."],
    ],
  };
}
