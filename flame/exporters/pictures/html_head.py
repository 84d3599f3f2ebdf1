"""Hold what makes a page of a report look and sort as it does: its style and its only script."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from flame.exporters.pictures.svg_script import level_style

STYLE = (
    """\
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --dim: #66666e; --line: #d8d8de;
  --shade: #f3f3f6; --high: #b3261e; --medium: #9a5b00; --low: #2f6f4f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6ea; --paper: #17171b; --dim: #9b9ba5; --line: #3a3a42; --shade: #222228;
    --high: #ff8a80; --medium: #ffc266; --low: #7fd4a6; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3, caption { font-size: .95rem; font-weight: 600; text-align: left; margin: .8rem 0 .2rem; }
nav { margin: .6rem 0; font-size: .9rem; }
nav a { margin-right: .8rem; white-space: nowrap; }
a { color: inherit; }
code, .icicle text { font: 12px/1.4 ui-monospace, Menlo, Consolas, monospace; }
details code, .find code { display: block; padding: .3rem .5rem; background: var(--shade);
  user-select: all; white-space: pre-wrap; }
summary { cursor: pointer; }
.note, .about { color: var(--dim); font-size: .9rem; margin: .3rem 0; }
.find { border-left: .3rem solid var(--dim); padding: .1rem .8rem; margin: .8rem 0; }
.find p { margin: .2rem 0; }
.high { border-color: var(--high); } .medium { border-color: var(--medium); }
.low { border-color: var(--low); }
.find b { text-transform: uppercase; font-size: .8rem; margin-right: .5rem; }
.high b { color: var(--high); } .medium b { color: var(--medium); } .low b { color: var(--low); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .3rem 0; }
th, td { padding: .15rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--dim); cursor: pointer; user-select: none; vertical-align: bottom; }
th[aria-sort=ascending]::after { content: " \\2191"; }
th[aria-sort=descending]::after { content: " \\2193"; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:not(.n) { min-width: 5rem; max-width: 40rem; }
td:not(.n):first-child { min-width: 12rem; }
td code { min-width: 18rem; }
.bar { display: flex; height: 1.6rem; margin: .2rem 0 .6rem; background: var(--shade); }
.bar i { display: block; }
i.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.p0 { background: #e69f00; } .p1 { background: #d55e00; } .p2 { background: #f0e442; }
.p3 { background: #56b4e9; } .p4 { background: #0072b2; } .p5 { background: #009e73; }
.p6 { background: #cc79a7; } .p7 { background: #8c8c94; } .p8 { background: #b7d7a8; }
.p9 { background: #7a6fb0; } .p10 { background: #4d4d55; }
.icicle { display: block; }
.icicle rect { fill: #c8c8ce; }
.icicle text { fill: #16161a; pointer-events: none; }
"""
    + level_style("icicle")
    + """\
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --dim: #444; --line: #bbb;
    --shade: #eee; }
  body { max-width: none; padding: 0; font-size: 11px; } nav { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .scroll { overflow: visible; } .scroll * { min-width: 0 !important; white-space: normal; }
  th, td { padding: .1rem .25rem; font-size: 9px; } tr, .find, .bar { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
}
"""
)

SCRIPT = """\
for (const head of document.querySelectorAll("th")) head.onclick = () => {
  const rows = head.closest("table").tBodies[0], at = head.cellIndex;
  const number = head.className == "n", old = head.getAttribute("aria-sort");
  const up = old ? old == "descending" : !number;
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const key = (row) => number ? row.cells[at].dataset.v : row.cells[at].textContent;
  const compare = (a, b) => number ? a - b : a.localeCompare(b);
  rows.append(...[...rows.rows].sort((one, other) => {
    const a = key(one), b = key(other);
    return !a || !b ? !a - !b : up ? compare(a, b) : compare(b, a);
  }));
};
"""
"""Sorts a table by a click on the head of a column; what is not known stays last."""


def head(title: str, scripts: tuple[str, ...] = (SCRIPT,)) -> str:
    """Write the head of a page called ``title``, which is escaped already.

    Nothing is loaded from elsewhere, and no script runs but ``scripts``: the browser refuses.
    """
    known = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {known}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri \'none\'; '
        "form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n"
    )


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
