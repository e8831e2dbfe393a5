"""How the page looks: light, dark and on paper; spacing and sizes as in the window."""

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1c1e21; --muted: #5b6068; --border: #d9dce1;
  --surface: #f5f6f8; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #17191c; --text: #e6e8eb; --muted: #a3a9b2;
  --border: #363a40; --surface: #202327; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 824px; margin: 0 auto; padding: 32px 32px 64px; }
h1 { font-size: 13px; font-weight: 600; color: var(--muted); margin: 0 0 8px; }
.headline { font-size: 24px; line-height: 1.35; font-weight: 600; margin: 0 0 8px; }
h2 { font-size: 20px; line-height: 1.3; margin: 48px 0 4px; }
p { margin: 0 0 12px; } .note { color: var(--muted); font-size: 13px; }
.facts { display: flex; flex-wrap: wrap; gap: 16px 24px;
  margin: 24px 0; padding: 16px 0; border: solid var(--border); border-width: 1px 0; }
.facts div { flex: 1 1 150px; min-width: 0; } .facts dt { font-size: 13px; color: var(--muted); }
.facts dd { margin: 0; font-size: 13px; overflow-wrap: anywhere; }
.facts strong { display: block; font-size: 20px; line-height: 1.4; font-variant-numeric: tabular-nums; }
.setting { display: grid; grid-template-columns: max-content 1fr;
  gap: 4px 16px; font-size: 13px; margin: 12px 0; }
.setting dt { color: var(--muted); } .setting dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font: 12px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
svg { display: block; width: 100%; height: auto; margin: 12px 0; font-variant-numeric: tabular-nums;
  font-family: inherit; }
.wide { overflow-x: auto; } .wide td { white-space: nowrap; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%;
  margin: 12px 0; }
th, td { text-align: right; padding: 4px 8px; border-bottom: 1px solid var(--border);
  vertical-align: bottom; }
th { font-weight: 600; } thead th { color: var(--muted); font-weight: 400; }
th:first-child, td:first-child, .words td, .words th { text-align: left; overflow-wrap: anywhere; }
th:first-child, td:first-child { padding-left: 0; } td:first-child, tbody th { min-width: 120px; }
.words td { vertical-align: top; }
.main th, .main td { background: var(--surface); }
.met { font-weight: 600; } .missed { font-weight: 600; color: var(--bad); }
ul { padding-left: 20px; margin: 8px 0; } li { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--surface); padding: 12px;
  border-radius: 8px; }
summary { cursor: pointer; color: var(--muted); margin-top: 24px; }
@media (max-width: 600px) { main { padding: 16px; } .headline { font-size: 20px; } }
@media print { :root { --page: #fff; --text: #000; --muted: #444; --border: #bbb;
  --surface: #f2f2f2; --bad: #900; }
  body { font-size: 11pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; } section:not(.long) { break-inside: avoid; } details { display: none; }
  .wide { overflow: visible; } .wide table { font-size: 7.5pt; } .wide th, .wide td { padding: 2px 3px; }
  h2 { margin-top: 24px; } }
"""
