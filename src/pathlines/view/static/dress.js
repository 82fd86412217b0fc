// @ts-check
/** One style sheet of the player, kept apart from the page it stands on by a shadow root. */

const STYLE = `
:host { display: block; container-type: inline-size; }
.player, .scene, .curves { --paper: #ffffff; --ink: #1f2328; --muted: #5b6570; --grid: #dfe5eb; --line: #0b62a8;
  --soft: #f2f5f8; --focus: #0b62a8; color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; -webkit-font-smoothing: antialiased; }
.dark, .dark .scene, .dark .curves { --paper: #0c1018; --ink: #e8edf4; --muted: #97a3b4; --grid: #212a38;
  --line: #6cb8f5; --soft: #151c28; --focus: #6cb8f5; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.player { background: var(--paper); padding: 20px 24px 14px; display: grid; gap: 12px 28px;
  grid-template-columns: minmax(0, 1.55fr) minmax(0, 1fr); }
.player.bare { padding: 0; }
.player.alone { grid-template-columns: minmax(0, 1fr); }
header, .outcome, .controls, .foot { grid-column: 1 / -1; }
h1 { font-size: 22px; line-height: 1.2; font-weight: 650; letter-spacing: -0.012em; margin: 0; text-wrap: balance; }
.subtitle { color: var(--muted); margin: 3px 0 0; overflow-wrap: anywhere; }
.outcome { margin: 0; padding: 7px 11px; border-left: 3px solid #d55e00; background: var(--soft); }
.scene { position: relative; width: 100%; height: 100%; min-height: 260px; cursor: grab; touch-action: none;
  border-radius: 6px; overflow: hidden; }
.scene:active { cursor: grabbing; }
.stage { height: clamp(300px, 64vh, 820px); }
.stage > div { height: 100%; }
.scene canvas { position: absolute; inset: 0; width: 100%; height: 100%; display: block; }
.scene .note { position: absolute; left: 8px; top: 6px; margin: 0; color: var(--muted); font-size: 12px; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.curves { min-width: 0; height: 100%; position: relative; }
.side { height: clamp(300px, 64vh, 820px); overflow-y: auto; scrollbar-width: thin; display: flex; flex-direction: column; }
.lines { flex: 1; min-height: 0; }
.known { margin: 6px 0 0; color: var(--muted); font-size: 12.5px; }
.known:empty { display: none; }
.panel { position: relative; }
.panel i { position: absolute; left: 0; will-change: transform; pointer-events: none; }
.rule { width: 0; border-left: 1px dashed var(--muted); }
.dot { top: 0; width: 11px; height: 11px; margin: -5.5px; border-radius: 50%; background: var(--line);
  border: 1.5px solid var(--paper); }
.value { position: absolute; right: 14px; top: -2px; color: var(--line); font-weight: 650; font-size: 14.5px;
  font-variant-numeric: tabular-nums; }
.curves svg { display: block; width: 100%; height: auto; font: inherit; }
.controls { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: 6px 14px; align-items: center; }
.controls .more { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
button, select { font: inherit; color: var(--ink); background: var(--soft); border: 1px solid var(--grid);
  border-radius: 7px; padding: 6px 12px; min-height: 36px; cursor: pointer; }
button:hover, select:hover { border-color: var(--muted); }
button:disabled { opacity: .5; cursor: default; }
button[aria-pressed="true"] { border-color: var(--line); color: var(--line); }
.play { border-radius: 50%; width: 44px; height: 44px; padding: 0; display: grid; place-items: center;
  background: var(--line); border-color: var(--line); color: var(--paper); }
.play svg { width: 18px; height: 18px; fill: currentColor; }
.time { font-variant-numeric: tabular-nums; min-width: 8.5em; text-align: right; }
.time b { font-weight: 650; font-size: 17px; }
input[type=range] { width: 100%; height: 28px; accent-color: var(--line); cursor: pointer; margin: 0; }
.group { display: inline-flex; }
.group button { border-radius: 0; margin-left: -1px; }
.group button:first-child { border-radius: 7px 0 0 7px; margin-left: 0; }
.group button:last-child { border-radius: 0 7px 7px 0; }
.group button[aria-pressed="true"] { position: relative; z-index: 1; }
.push { flex: 1; }
.foot { color: var(--muted); font-size: 13px; }
.foot summary { cursor: pointer; }
.foot code { display: block; font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; color: var(--ink);
  background: var(--soft); padding: 8px 10px; border-radius: 6px; margin: 5px 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
kbd { font: 11px ui-monospace, monospace; border: 1px solid var(--grid); border-radius: 4px; padding: 0 4px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@container (max-width: 720px) {
  .player { grid-template-columns: minmax(0, 1fr); padding: 14px 12px 10px; gap: 10px; }
  .stage { height: min(88cqw, 62vh); }
  .side { height: auto; overflow: visible; order: 3; display: block; }
  .time { min-width: 5.4em; }
  .controls { order: 2; }
  .foot { order: 4; }
  h1 { font-size: 18px; }
  .push { display: none; }
}
@media print { .controls { display: none; } }
`;

/** @type {CSSStyleSheet|undefined} */
let sheet;

/**
 * The shadow root of an element, with our style in it; an element inside one is its own place.
 * @param {HTMLElement} element
 * @returns {any} a ShadowRoot, or the element
 */
export function dress(element) {
  if (element.getRootNode() instanceof ShadowRoot) return element;
  const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  root.adoptedStyleSheets = [sheet];
  return root;
}
