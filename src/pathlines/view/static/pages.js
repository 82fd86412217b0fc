// @ts-check
/**
 * What all pages share: fetching answers, the newest only; saying what went wrong; the address; the clipboard. Nothing
 * is asked of any other host, and nothing is computed here.
 */

const PAGE = Math.random().toString(36).slice(2);
/** @type {Map<string, AbortController>} the newest question of each kind */
const asking = new Map();

/**
 * The answer to an address, or nothing where a newer question of its kind (the address up to "?") came in between.
 * @param {string} address
 * @param {RequestInit} [how]
 * @returns {Promise<any>}
 */
export async function ask(address, how = {}) {
  const kind = address.split('?')[0];
  asking.get(kind)?.abort();
  const own = new AbortController();
  asking.set(kind, own);
  try {
    /** @type {any} */
    const early = window;
    const begun = early.firstAddress === address ? early.first : undefined;
    early.firstAddress = '';
    const headers = { 'X-Pathlines-Page': PAGE + kind, ...(how.headers ?? {}) };
    const answer = await (begun ?? fetch(address, { ...how, signal: own.signal, headers }));
    if (answer.status === 409) return null;
    if (answer.status === 401 || answer.status === 403) throw new Error('The server does not know this page any more: open the link that it printed.');
    return await answer.json();
  } catch (/** @type {any} */ error) {
    if (error.name === 'AbortError') return null;
    if (error instanceof TypeError) return { message: 'The server is away. This page goes on when it is back.', away: true };
    return { message: String(error.message ?? error) };
  }
}

/** @param {string} text in the page's own place for it */
export function say(text) {
  const place = document.querySelector('.banner');
  if (place) place.textContent = text;
}

/**
 * The address of what is shown, without a new entry in the history.
 * @param {string} query
 */
export function show(query) {
  history.replaceState(history.state, '', query ? `?${query}` : location.pathname);
}

/** @param {HTMLElement} button whose block of text goes on the clipboard */
export async function copy(button) {
  const text = button.closest('.copy')?.querySelector('pre')?.textContent ?? location.href;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'copied';
  } catch {
    button.textContent = 'press Ctrl-C';
    const range = document.createRange();
    const block = button.closest('.copy')?.querySelector('pre');
    if (block) {
      range.selectNodeContents(block);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
    }
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

/**
 * Tell the server's side of the page, once it listens.
 * @param {string} name
 * @param {any} value
 */
export function tell(name, value) {
  /** @type {any} */
  const page = window;
  if (page.did_handshake) page.emitEvent(name, value);
  else setTimeout(() => tell(name, value), 50);
}

/**
 * An element once it is there: the framework builds the page after its scripts are read.
 * @param {string} selector
 * @returns {Promise<HTMLElement>}
 */
export function there(selector) {
  return new Promise((found) => {
    const look = () => {
      const element = /** @type {HTMLElement|null} */ (document.querySelector(selector));
      if (element) found(element);
      else requestAnimationFrame(look);
    };
    look();
  });
}
