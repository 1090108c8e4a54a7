// A folder of files holds the answers that the page shows, and none to questions in words.

/** There is no field for them. */
export const asking = () => false;
