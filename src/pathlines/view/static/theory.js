// @ts-check
/** Theory: a list that is searched here, the claim that is chosen, its numbers, and those of the reader's own setting. */
import { ask, copy, say, show, tell, there } from './pages.js';

/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} family
 * @property {string} paper
 * @property {string} arxiv
 * @property {string} label markup of the server's own making
 * @property {string} statement markup
 * @property {string} where markup
 * @property {string} standing markup
 * @property {string} expected
 * @property {string} corrected_by
 * @property {string} alias_of
 * @property {string[]} printed errata of this claim
 */

/** @type {Entry[]} */
let entries = [];
/** @type {Record<string, string>} */
let verdicts = {};
/** @type {Map<string, string>} */
const texts = new Map();
let filter = 'all';
let query = '';
let wide = '';

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {(Node|string)[]} children
 * @returns {any}
 */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** @param {Entry} entry */
function chip(entry) {
  const found = verdicts[entry.id];
  const odd = found && found !== entry.expected;
  const hint = !found ? 'expected; not run at quick size here' : odd ? `expected: ${entry.expected}` : 'as stored on this machine';
  return make('span', { className: `chip ${found ?? entry.expected}${found ? '' : ' faint'}${odd ? ' odd' : ''}`, title: hint }, found ?? entry.expected);
}

function chosen() {
  return new URLSearchParams(query).get('claim') ?? '';
}

/** What fits the words and the verdict, by family and paper. */
function list() {
  const box = /** @type {HTMLInputElement} */ (document.getElementById('words'));
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fit = entries.filter((e) => (filter === 'all' || (verdicts[e.id] ?? e.expected) === filter) && words.every((w) => texts.get(e.id)?.includes(w)));
  const place = /** @type {HTMLElement} */ (document.getElementById('list'));
  const open = words.length > 0 || filter !== 'all';
  const groups = Map.groupBy ? Map.groupBy(fit, (e) => e.family) : grouped(fit, (e) => e.family);
  place.replaceChildren(...[...groups].map(([family, members]) => {
    const here = members.some((e) => e.id === chosen());
    const papers = [...grouped(members, (e) => e.paper)].map(([paper, claims]) => make('section', {}, make('h3', {}, paper), make('ul', {}, ...claims.map(row))));
    return make('details', { open: open || here || family === wide, className: 'family', ontoggle: (/** @type {any} */ e) => { if (e.target.open) wide = family; } },
      make('summary', {}, family, make('span', { className: 'small' }, String(members.length))), ...papers);
  }));
  const many = Object.keys(verdicts).length;
  const stored = many ? `, ${many} of ${entries.length} with an outcome stored on this machine` : '';
  /** @type {HTMLElement} */ (document.getElementById('count')).textContent = `${fit.length} of ${entries.length} claims${stored}`;
}

/**
 * @template T
 * @param {T[]} all
 * @param {(one: T) => string} key
 * @returns {Map<string, T[]>}
 */
function grouped(all, key) {
  const found = new Map();
  for (const one of all) found.set(key(one), [...(found.get(key(one)) ?? []), one]);
  return found;
}

/** @param {Entry} entry */
function row(entry) {
  const link = make('a', { href: `/theory?claim=${encodeURIComponent(entry.id)}` }, make('b', {}, entry.id.split('/')[1]), make('span', { className: 'label', innerHTML: entry.label }), chip(entry));
  if (entry.id === chosen()) link.setAttribute('aria-current', 'true');
  link.onclick = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(entry.id);
  };
  return make('li', {}, link);
}

/** @param {string} id */
function choose(id) {
  query = new URLSearchParams({ claim: id }).toString();
  paint(null);
  address(true);
  tell('claim', id);
  const article = document.querySelector('.claim');
  if (window.matchMedia('(max-width: 900px)').matches) article?.scrollIntoView({ block: 'start' });
  list();
}

/**
 * @param {Entry} entry
 * @param {string} heading
 */
function side(entry, heading) {
  const link = entry.id === chosen() ? make('b', {}, entry.id) : make('a', { href: `/theory?claim=${encodeURIComponent(entry.id)}` }, entry.id);
  return make('div', {}, make('p', { className: 'legend' }, heading), make('p', {}, link, ' ', chip(entry)), make('p', { className: 'statement', innerHTML: entry.statement }));
}

/** @param {Entry} entry statement, and where there is an erratum the two beside each other */
function statement(entry) {
  const other = entries.find((e) => e.id === entry.corrected_by);
  const printed = entries.filter((e) => entry.printed.includes(e.id));
  const pairs = other ? [side(entry, 'As printed'), side(other, 'What holds')]
    : printed.length ? [side(entry, 'What holds'), ...printed.map((e) => side(e, 'As printed'))] : [];
  return pairs.length ? make('div', { className: 'pair' }, ...pairs) : make('p', { className: 'statement', innerHTML: entry.statement });
}

/** How many claims of each family hold, are refuted, are open. */
function overview() {
  const kinds = ['holds', 'refuted', 'inconclusive'];
  const rows = [...grouped(entries, (e) => e.family)].map(([family, members]) => {
    const button = make('button', { type: 'button', onclick: () => { wide = family; list(); } }, family);
    const counts = kinds.map((kind) => make('td', {}, String(members.filter((e) => (verdicts[e.id] ?? e.expected) === kind).length)));
    return make('tr', {}, make('td', {}, button), ...counts, make('td', {}, String(new Set(members.map((e) => e.paper)).size)));
  });
  const head = make('tr', {}, make('th', {}, 'family'), ...kinds.map((kind) => make('th', {}, make('span', { className: `chip ${kind}` }, kind))), make('th', {}, 'papers'));
  return make('div', {}, make('h2', { className: 'name' }, `${entries.length} claims of ${new Set(entries.map((e) => e.paper)).size} papers`),
    make('p', { className: 'lead' }, 'A claim holds when every compared number lies within its tolerance. What is wrong in print is a claim too: it is refuted, and stands beside what holds instead. Choose one to see its numbers, or to run it with a setting of your own.'),
    make('div', { className: 'scroll' }, make('table', { className: 'overview' }, head, ...rows)));
}

/** @param {any} data the answer of the server, or nothing while it is on its way */
async function paint(data) {
  const place = await there('#sheet');
  const entry = entries.find((e) => e.id === chosen());
  document.body.classList.toggle('has-claim', Boolean(entry));
  if (!entry) {
    place.replaceChildren(overview());
    return;
  }
  const parts = [
    make('a', { className: 'back small', href: '#list' }, '↑ all claims'),
    make('h2', { className: 'name' }, entry.id, ' ', chip(entry)), make('p', { className: 'label', innerHTML: entry.label }), statement(entry),
    make('p', { className: 'small' }, make('a', { href: `https://arxiv.org/abs/${entry.arxiv}` }, entry.paper), make('span', { innerHTML: entry.where ? `: ${entry.where}` : '' })),
  ];
  if (entry.standing) parts.push(make('p', { className: 'small', innerHTML: entry.standing }));
  if (entry.alias_of) parts.push(make('p', { className: 'small' }, `Another name of ${entry.alias_of}.`));
  if (data?.html) parts.push(make('div', { className: 'card-inside', innerHTML: data.html }));
  else if (data) parts.push(tolerances(data));
  place.replaceChildren(...parts);
  if (!data) return;
  (await there('#command')).textContent = data.command;
  (await there('#python')).textContent = data.python;
}

/** @param {any} data */
function tolerances(data) {
  const cost = data.cost ? ` It takes some ${data.cost} s.` : '';
  const rows = data.tolerances.map((/** @type {string[]} */ [name, kind, reason]) => make('tr', {}, make('td', {}, make('b', {}, name.replaceAll('_', ' '))), make('td', {}, `${kind}: ${reason}`)));
  return make('div', {}, make('p', { className: 'small empty' }, `No outcome at this setting is stored on this machine: run it below, or all with pathlines verify.${cost}`),
    make('div', { className: 'scroll' }, make('table', {}, make('tr', {}, make('th', {}, 'compared'), make('th', {}, 'tolerance and why')), ...rows)));
}

/** @param {{query: string}} wanted */
async function showClaim(wanted) {
  query = wanted.query;
  address();
  (await there('#running')).textContent = '';
  const data = await ask(`/data/claim?${query}`);
  if (!data || query !== wanted.query) return;
  say(data.message ?? '');
  if (data.away) setTimeout(() => query === wanted.query && showClaim(wanted), 2000);
  if (!data.message) await paint(data);
}

async function run() {
  const asked = query;
  const button = /** @type {HTMLButtonElement} */ (await there('#run'));
  const said = await there('#running');
  button.disabled = true;
  const began = performance.now();
  const clock = setInterval(() => { said.textContent = `running, ${Math.round((performance.now() - began) / 1000)} s; the first run of a kind compiles`; }, 500);
  const data = await ask(`/data/claim-run?${asked}`);
  clearInterval(clock);
  button.disabled = false;
  if (!data || asked !== query) return;
  say(data.message ?? '');
  said.textContent = data.message ? '' : `${data.verdict}, ${data.seconds === null ? 'from the store' : `computed in ${data.seconds.toFixed(1)} s`}`;
  if (data.message) return;
  if (new URLSearchParams(asked).size === 1) verdicts[data.id] = data.verdict;
  await paint(data);
  list();
}

/** @param {boolean} [anew] whether the page before can be gone back to */
function address(anew = false) {
  const said = new URLSearchParams(query);
  const words = /** @type {HTMLInputElement|null} */ (document.getElementById('words'))?.value;
  if (words) said.set('words', words);
  if (filter !== 'all') said.set('verdict', filter);
  if (anew) history.pushState(history.state, '', `?${said}`);
  else show(said.toString());
}

async function begin() {
  const place = await there('#sheet');
  const asked = JSON.parse(place.dataset.asked ?? '{}');
  filter = ['holds', 'refuted', 'inconclusive'].includes(asked.verdict) ? asked.verdict : 'all';
  const own = Object.entries(asked).filter(([name]) => name === 'claim' || name.startsWith('set.'));
  query = new URLSearchParams(/** @type {any} */ (own)).toString();
  const data = await ask('/data/theory');
  if (!data) return;
  if (data.message) { say(data.message); return; }
  entries = data.claims;
  for (const e of entries) texts.set(e.id, [e.id, e.paper, e.label, e.where, e.statement].join(' ').replace(/<[^>]+>/g, '').toLowerCase());
  document.querySelector('.early')?.setAttribute('hidden', '');
  for (const button of document.querySelectorAll('[data-verdict]')) {
    const press = () => document.querySelectorAll('[data-verdict]').forEach((b) => b.setAttribute('aria-pressed', String(b.getAttribute('data-verdict') === filter)));
    button.addEventListener('click', () => { filter = button.getAttribute('data-verdict') ?? 'all'; press(); list(); address(); });
    press();
  }
  document.getElementById('words')?.addEventListener('input', () => { list(); address(); });
  window.addEventListener('popstate', () => location.reload());
  list();
  if (chosen()) await showClaim({ query });
  else await paint(null);
  const known = await ask('/data/verdicts');
  if (known?.verdicts) {
    verdicts = known.verdicts;
    list();
    if (!chosen()) await paint(null);
  }
}

/** @type {any} */ (window).pathlines = { show: showClaim, run, copy, choose };
begin();
