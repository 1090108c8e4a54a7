// The addresses of the service, from its own OpenAPI document.

import { get } from "./api.js";
import { h, here, p, section, show, table } from "./dom.js";

const VERBS = ["get", "post", "put", "delete"];
const kind = ({ type, anyOf, items, $ref, enum: values }) => values?.join(" | ") ?? $ref?.split("/").at(-1)
  ?? (anyOf ? anyOf.map(kind).join(" or ") : type === "array" ? `list of ${kind(items ?? {})}` : type ?? "anything");
const anchor = (path, verb) => `${verb}${path}`.replace(/[^\w]+/g, "-");

export async function docs() {
  here([["Addresses", "/docs"]], "/openapi.json");
  const { info, paths, components: { schemas } } = await get("/openapi.json"), tags = new Map();
  for (const [path, verbs] of Object.entries(paths)) {
    for (const verb of VERBS.filter((each) => verbs[each])) {
      const route = { path, verb, ...verbs[verb] }, tag = route.tags?.[0] ?? "more";
      tags.set(tag, [...tags.get(tag) ?? [], route]);
    }
  }
  show(h("h1", "Addresses"), p("lead", info.description), p("fine", `${info.title} ${info.version}. Programs read the same at `, h("a", { href: "/openapi.json" }, "/openapi.json"), "."),
    [...tags].map(([tag, routes]) => section(tag[0].toUpperCase() + tag.slice(1), routes.map((route) => described(route, schemas)))));
}

function described({ path, verb, summary, description, parameters = [], requestBody }, schemas) {
  const rows = parameters.map(({ name, in: place, required, schema, description: said = "" }) => [name, place === "query" ? kind(schema) : `${kind(schema)}, in the ${place}`, required ? "required" : "", said]);
  const bodies = Object.values(requestBody?.content ?? {}).map(({ schema }) => schemas[schema.$ref?.split("/").at(-1)]).filter(Boolean);
  for (const { properties = {}, required = [] } of bodies) {
    rows.push(...Object.entries(properties).map(([name, each]) => [name, `${kind(each)}, in the body`, required.includes(name) ? "required" : "", each.description ?? ""]));
  }
  return h("details", { class: "route", id: anchor(path, verb) }, h("summary", h("code", `${verb.toUpperCase()} ${path}`), ` ${summary ?? ""}`),
    description && h("p", description), rows.length > 0 && table(`Parameters of ${verb} ${path}`, ["name", "kind", "", "meaning"], rows),
    h("pre", { tabindex: 0 }, example(path, verb, parameters, bodies)));
}

/** How to ask with curl, with the examples of the document. */
function example(path, verb, parameters, bodies) {
  const value = ({ example: one, schema = {} }) => one ?? schema.examples?.[0], filled = parameters.filter(({ in: place }) => place === "path")
    .reduce((address, each) => address.replace(`{${each.name}}`, value(each) ?? each.name), path);
  const asked = parameters.filter((each) => each.in === "query" && (each.required || value(each) !== undefined) && value(each) !== undefined);
  const body = Object.fromEntries(bodies.flatMap(({ properties = {} }) => Object.entries(properties)).filter(([, each]) => each.examples?.[0] !== undefined).map(([name, each]) => [name, each.examples[0]]));
  const more = verb === "get" ? asked.map((each) => ` --data-urlencode '${each.name}=${[value(each)].flat()[0]}'`).join("") : bodies.length ? ` --json '${JSON.stringify(body)}'` : "";
  return `curl ${verb === "get" && more ? "-G " : ""}${location.origin}${filled}${more}`;
}
