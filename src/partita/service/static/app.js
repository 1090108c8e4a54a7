// The explorer: which page an address asks for, and in which colours.

import { Refused } from "./api.js";
import { button, byId, div, h, p, say, show } from "./dom.js";
import { place } from "./place.js";
import { catalogue, release } from "./overview.js";
import { docs } from "./docs.js";
import { stream } from "./stream.js";
import { view } from "./view.js";

const PAGES = [[/^\/$/, catalogue], [/^\/releases\/([^/]+)$/, release], [/^\/releases\/([^/]+)\/view$/, view], [/^\/streams\/([^/]+)$/, stream], [/^\/docs$/, docs]];
const THEMES = ["system", "light", "dark"], root = document.documentElement;
const TITLES = { 404: "Nothing here", 409: "Damaged", 429: "Too many questions", 503: "Busy" };

async function open() {
  const [match, page] = PAGES.map(([pattern, each]) => [place().pathname.match(pattern), each]).find(([found]) => found);
  const waiting = setTimeout(show, 300, p("lead", "Reading…"));
  try {
    await page(...match.slice(1));
  } catch (error) {
    failed(error);
  } finally {
    clearTimeout(waiting);
  }
}

/** Say what went wrong, and what can be done. */
function failed(error) {
  const known = error instanceof Refused, words = known ? error.message : "The service cannot be reached.";
  const title = known ? TITLES[error.status] ?? "That cannot be asked" : "No answer";
  show(h("h1", title), p("lead", words),
    div("buttons", button("Try again", () => location.reload()), button("Go back", () => history.back())));
  say(`${title}. ${words}`);
}

function themed(theme) {
  root.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  localStorage.setItem("partita-theme", theme);
  dispatchEvent(new Event("themed"));
}

themed(localStorage.getItem("partita-theme") ?? "system");
byId("theme").onclick = () => themed(THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length]);
matchMedia("(prefers-color-scheme: dark)").onchange = () => dispatchEvent(new Event("themed"));
addEventListener("popstate", open);
open();
