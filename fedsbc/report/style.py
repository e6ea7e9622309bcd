"""How the report looks, and the one script of ours in it. Nothing is fetched from anywhere."""

STYLE = """
:root { color-scheme: light; --ink: #1d2126; --soft: #5b636d; --line: #dfe3e7; --pale: #f6f7f8; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; font: 16px/1.55 system-ui, -apple-system,
  "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 56px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.01em; margin: 0 0 8px; text-wrap: balance;
  overflow-wrap: anywhere; }
h2 { font-size: 20px; line-height: 1.3; margin: 48px 0 8px; }
h3 { font-size: 15px; margin: 0; }
p { margin: 0 0 12px; max-width: 74ch; }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: 14px; }
.scroll { overflow-x: auto; margin: 12px 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums;
  min-width: 100%; }
th, td { padding: 7px 10px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-weight: 600; color: var(--soft); vertical-align: bottom; }
caption { text-align: left; font-weight: 600; padding: 8px 0 2px; }
th[scope="colgroup"] { text-align: center; color: var(--ink); padding-bottom: 4px; }
.plain { list-style: none; padding: 0; margin: 0 0 12px; } .plain li { margin: 4px 0; }
tbody th { font-weight: 600; }
.text td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.text th { text-align: left; }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 8px; }
.legend { display: flex; flex-wrap: wrap; gap: 8px; margin: 16px 0; }
.legend button { font: inherit; font-size: 14px; color: inherit; background: #fff; cursor: pointer;
  border: 1px solid var(--line); border-radius: 999px; padding: 5px 14px 5px 10px; }
.legend button[aria-pressed="false"] { opacity: .45; }
.legend button:focus-visible { outline: 2px solid #0b5fa5; outline-offset: 2px; }
.figures { display: grid; gap: 36px 32px; }
@media screen and (min-width: 860px) {
  .figures { grid-template-columns: 1fr 1fr; }
  figure:first-child:nth-last-child(odd) { grid-column: 1 / -1; }
}
figure { margin: 0; min-width: 0; }
.plot { height: 340px; }
details { margin: 16px 0; }
summary { cursor: pointer; color: var(--soft); }
code { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
footer { margin-top: 56px; padding-top: 16px; border-top: 1px solid var(--line); font-size: 14px;
  color: var(--soft); }
@media (max-width: 600px) {
  main { padding: 24px 16px 40px; } h1 { font-size: 25px; } h2 { margin-top: 36px; }
  .scroll { margin-right: -16px; padding-right: 16px; }
  .sticky th:first-child { position: sticky; left: 0; background: #fff; }
  .sticky tbody th:first-child { white-space: normal; min-width: 32vw; }
}
@media print {
  @page { size: A4; margin: 14mm; }
  body { font-size: 12px; } main { padding: 0; max-width: none; }
  h2 { margin-top: 22px; break-after: avoid; }
  table { font-size: 10px; } th, td { padding: 4px 7px; } .note, figcaption { font-size: 11px; }
  .figures { grid-template-columns: 1fr 1fr; gap: 18px 16px; } .legend { break-after: avoid; }
  figure, .scroll { break-inside: avoid; } .plot { width: 330px; }
  .scroll { overflow: visible; }
}
"""

SCRIPT = """
const plots = () => Array.from(document.querySelectorAll('.plot .js-plotly-plot'));
document.querySelectorAll('.legend button').forEach((button, run) => {
  button.addEventListener('click', () => {
    const shown = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(shown));
    plots().forEach((plot) => Plotly.restyle(plot, { visible: shown }, [run]));
  });
});
const resize = (width) => plots().forEach((plot) =>
  Plotly.relayout(plot, width ? { width, autosize: false } : { width: null, autosize: true }));
window.addEventListener('load', () => plots().forEach((plot) => Plotly.Plots.resize(plot)));
window.addEventListener('beforeprint', () => resize(330));
window.addEventListener('afterprint', () => resize(null));
"""
