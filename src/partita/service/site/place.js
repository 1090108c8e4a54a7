// Where the reader is, behind the sign # of the address: a folder of files has no addresses of its own.

/** Whether a service answers, which can do more than a folder of files. */
export const served = false;

/** The path and the query of the page that is shown. */
export function place() {
  const [pathname, query] = (location.hash.slice(1) || "/").split(/\?(.*)/s);
  return { pathname, search: query ? `?${query}` : "" };
}

/** What a link to a page of ours says. */
export const link = (href) => (href.startsWith("/") ? `#${href}` : href);

document.querySelector(".skip").onclick = (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
};
