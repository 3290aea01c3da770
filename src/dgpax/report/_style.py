"""The look of the page, in light and dark, from a phone to a desktop and on paper. No selector needs escaping."""

CSS = """
:root { color-scheme: light dark; --paper: #fbfaf8; --card: #ffffff; --ink: #1d2430; --muted: #5c6675; --line: #e2e1dc;
  --accent: #2563a8; --soft: #2563a82b; --warm: #b5560c; --good: #1d7a4c; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #12151b; --card: #1a1f28; --ink: #e6e9ee; --muted: #9aa5b4;
  --line: #2f3743; --accent: #6fb0f5; --soft: #6fb0f53d; --warm: #f0a05a; --good: #62c994; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif;
  overflow-wrap: break-word; }
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 0 0 .75rem; }
h3 { font-size: .95rem; margin: 0 0 .35rem; }
p { margin: 0 0 .75rem; max-width: 46rem; }
.muted, figcaption, footer { color: var(--muted); font-size: .875rem; }
figcaption { margin-top: .25rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 0; font-size: .9rem; }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.25rem;
  margin: 1.25rem 0; }
.cards, .figures { display: grid; gap: 1.25rem; }
.cards { grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); margin: 1.25rem 0; }
.figures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); margin: .5rem 0 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--muted);
  border-radius: 10px; padding: .8rem 1rem; }
.card b { display: block; font-size: 1.4rem; line-height: 1.3; }
.card span { color: var(--muted); font-size: .875rem; }
.good { border-left-color: var(--good); }
.bad { border-left-color: var(--bad); }
.so-so { border-left-color: var(--warm); }
figure { margin: 0; max-width: 27rem; min-width: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg.small { width: 5rem; }
svg.bar-of-share { height: .8rem; min-width: 4rem; }
text { fill: var(--muted); font: 11px system-ui, sans-serif; }
text.label { fill: var(--ink); }
.grid { stroke: var(--line); stroke-width: 1; }
.line, .line-warm, .diagonal, .whisker, .draw { fill: none; stroke: var(--accent); stroke-width: 2;
  stroke-linejoin: round; }
.line-warm { stroke: var(--warm); stroke-width: 1.6; stroke-dasharray: 5 4; }
.diagonal { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 3 3; }
.whisker { stroke-width: 1.4; stroke-opacity: .4; }
.draw { stroke-width: .9; stroke-opacity: .45; }
.band { fill: var(--soft); stroke: none; }
.chance { fill: var(--muted); fill-opacity: .16; stroke: none; }
.point, .point-ink, .point-warm { fill: none; stroke: var(--accent); stroke-width: 4.5; stroke-linecap: round; }
.point-ink { stroke: var(--ink); stroke-width: 3; stroke-opacity: .55; }
.point-warm { stroke: var(--warm); }
.bar { fill: var(--accent); }
.trough { fill: var(--line); }
.range { fill: var(--warm); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: 0 0 .75rem; }
th, td { text-align: left; padding: .35rem .5rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 600; font-size: .82rem; }
tbody tr:last-child td { border-bottom: none; }
.number { font-variant-numeric: tabular-nums; }
.name, code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em; }
.name, .content { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; margin: 0 0 .75rem; }
table.confusion { width: auto; }
td.heat { min-width: 3rem; text-align: center; }
.heat-1 { background: color-mix(in srgb, var(--accent) 12%, transparent); }
.heat-2 { background: color-mix(in srgb, var(--accent) 28%, transparent); }
.heat-3 { background: color-mix(in srgb, var(--accent) 44%, transparent); }
.heat-4 { background: color-mix(in srgb, var(--accent) 60%, transparent); }
footer { padding-bottom: 2.5rem; }
@media (max-width: 640px) { .wide { display: none; } h1 { font-size: 1.4rem; } section { padding: .9rem .8rem; }
  header, main, footer { padding-left: .75rem; padding-right: .75rem; } }
@media print { body { background: none; } section, .card { break-inside: avoid; } nav { display: none; } }
"""
