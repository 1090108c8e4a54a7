// Elements in one expression, and what every page uses.

import { link } from "./place.js";

const real = (child) => child !== null && child !== undefined && child !== false;

function filled(element, ...children) {
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (real(value)) element.setAttribute(name, value === true ? "" : name === "href" ? link(value) : value);
  }
  element.append(...children.flat(3).filter(real));
  return element;
}

/** An element of HTML or SVG, with attributes if there are any: h("p", {class: "note"}, "words", another). */
export const h = (name, ...rest) => filled(document.createElement(name), ...rest);

export const s = (name, ...rest) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), ...rest);
export const p = (name, ...children) => h("p", { class: name }, children);
export const div = (name, ...children) => h("div", { class: name }, children);

export function fill(element, ...children) {
  element.replaceChildren();
  filled(element, children);
}

export const byId = (id) => document.getElementById(id);
export const show = (...children) => fill(byId("main"), children);
export const section = (title, ...children) => h("section", h("h2", title), children);
export const button = (words, onclick, more) => h("button", { type: "button", onclick, ...more }, words);

/** Where the reader is, from the overview down, and where the data of the page are. */
export function here(steps, data) {
  const links = steps.map(([words, href], place) => h("a", { href, "aria-current": !steps[place + 1] && "page" }, words));
  fill(byId("trail"), document.querySelector(".brand"), links);
  document.title = [...steps.map(([words]) => words).reverse(), "Partita"].join(" · ");
  byId("twin")?.setAttribute("href", data);
}

/** The same work, but only once nobody has asked for it for a while. */
export function settled(work, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(work, wait, ...given);
  };
}

/** Have a sentence read out, once it stands still. */
export const say = settled((words) => { byId("said").textContent = words; }, 500);

/** Call `draw(width)` now and whenever the width of an element changes. */
export function fitted(element, draw) {
  let last = 0;
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width && Math.round(width) !== last) draw(last = Math.round(width));
  }).observe(element);
}

export function snippet(what, text) {
  const said = (words) => () => { copy.textContent = words; };
  const copy = button("Copy", () => navigator.clipboard.writeText(text).then(said("Copied"), said("Select it")), { "aria-label": `Copy ${what}` });
  return div("snippet", h("h3", what), h("pre", { tabindex: 0 }, text), copy);
}

export const facts = (rows) => h("dl", rows.filter(Boolean).map(([term, words]) => h("div", h("dt", term), h("dd", words))));

export const table = (caption, head, rows) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {},
  h("thead", h("tr", head.map((words) => h("th", { scope: "col" }, words)))),
  h("tbody", rows.map((row) => h("tr", row.map((cell) => h("td", cell)))))));
