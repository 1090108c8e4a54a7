// The service: questions, files and live streams, with a token where one is needed.

import { h, p } from "./dom.js";

const TOKEN = "partita-token", PATIENCE = 5;
const after = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** What the service refused, in its own words. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `The service answered ${status}.`);
    this.status = status;
  }
}

/** An address with a query; what is empty is left out. */
export function address(path, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value || value === 0)).toString();
  return query ? `${path}?${query}` : path;
}

export const get = async (path, params) => (await response(address(path, params))).json();

/** In a frame of another page nobody is asked for a token, and browsers keep nothing. */
const framed = window.top !== window;
const held = () => (framed ? null : sessionStorage.getItem(TOKEN));

/** Asks for a token if one is needed, and waits if told to. */
async function response(url, attempt = 1) {
  const token = held();
  const answer = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  if (!framed && (answer.status === 401 || answer.status === 403)) await (asking ??= newToken(token && error?.message));
  else if (answer.status === 429 && attempt < PATIENCE) await after(Number(answer.headers.get("Retry-After")) || 1);
  else throw new Refused(answer.status, error);
  return response(url, attempt + 1);
}

let asking = null;

/** One dialog for all questions that wait. */
const newToken = (refused) => new Promise((done) => {
  const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const onsubmit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, field.value.trim());
    dialog.remove();
    asking = null;
    done();
  };
  const dialog = h("dialog", { "aria-labelledby": "asked", oncancel: (event) => event.preventDefault() },
    h("form", { onsubmit }, h("h2", { id: "asked" }, "A token, please"),
      h("p", "These numbers are not open to all. Ask whoever runs the service for a token; it stays in this tab."),
      h("label", { for: "token" }, "Token"), field, h("p", { class: "warn", role: "alert" }, refused),
      h("button", { class: "main" }, "Continue")));
  document.body.append(dialog);
  dialog.showModal();
});

/** A link to a file, which works with a token too. */
export const download = (words, href, name) => h("a", { href, download: name, async onclick(event) {
  if (!held()) return;
  event.preventDefault();
  const file = URL.createObjectURL(await (await response(href)).blob());
  h("a", { href: file, download: name }).click();
  setTimeout(URL.revokeObjectURL, 10000, file);
} }, words);

/** Events after a period as they come, for ever; `state` hears whether the line is open. */
export async function listen(path, since, each, state) {
  for (let last = since, pause = 1; ; pause = Math.min(30, 2 * pause)) {
    try {
      const { body } = await response(`${path}?since=${last}`);
      state(true);
      for await (const { id, event, data } of events(body)) {
        [last, pause] = [id ?? last, 1];
        if (event === "output") each(JSON.parse(data));
      }
    } catch { /* The line broke: try again. */ }
    state(false);
    await after(pause);
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (text + value).replaceAll("\r", "").split("\n\n");
    text = parts.pop();
    yield* parts.map((part) => Object.fromEntries(part.split("\n").map((line) => line.split(/: ?(.*)/s, 2))));
  }
}
