// Where the reader is, and how one page links to another: by addresses of the service.

/** Whether a service answers, which can do more than a folder of files. */
export const served = true;

/** The path and the query of the page that is shown. */
export const place = () => location;

/** What a link to a page of ours says. */
export const link = (href) => href;
