"""Hold what makes a flame graph in SVG look as it does and answer: its style and its script."""

from __future__ import annotations

_LEVELS = """\
.frames .python rect { fill: #8fc7ee; } .frames .native rect { fill: #b9cbe2; }
.frames .frame rect { fill: #f0a880; } .frames .launch rect { fill: #dba6c6; }
.frames .nvtx rect { fill: #7cc99c; } .frames .shapes rect { fill: #b3d39f; }
.frames .kernel rect { fill: #f0b84f; } .frames .graph rect { fill: #e89a6b; }
.frames .memcpy rect { fill: #f3ea84; } .frames .memset rect { fill: #dcd39a; }
"""


def level_style(name: str) -> str:
    """Colour the frames of each level in elements of the class ``name``."""
    return _LEVELS.replace(".frames", f".{name}")


STYLE = (
    """\
svg.flame { font: 12px ui-monospace, Menlo, Consolas, monospace; color-scheme: light dark;
  --ink: #16161a; --paper: #fff; --hit: #d81b8c; }
@media (prefers-color-scheme: dark) { svg.flame { --ink: #e6e6ea; --paper: #17171b; } }
.flame > rect { fill: var(--paper); }
.flame > text { fill: var(--ink); }
.flame input { font: inherit; width: 100%; box-sizing: border-box; }
.flame input:invalid { outline: 2px solid #d32f2f; }
.frames > svg { cursor: pointer; }
.frames rect { fill: #c8c8ce; }
.frames text { fill: #16161a; pointer-events: none; }
"""
    + level_style("frames")
    + """\
.frames > svg:hover > rect { stroke: var(--ink); stroke-width: 2; }
.frames > .above { opacity: .55; }
.frames > .hit > rect { fill: var(--hit); } .frames > .hit > text { fill: #fff; }
"""
)

SCRIPT = """\
for (const picture of document.querySelectorAll("svg.flame")) {
  const line = picture.querySelector(".told"), hint = line.textContent, open = [];
  const frames = [...picture.querySelector(".frames").children].map((box, index) => {
    const [x, width] = ["x", "width"].map((key) => parseFloat(box.getAttribute(key)));
    const told = box.querySelector("title").textContent.split("\\n");
    return { box, index, x, width, row: +box.getAttribute("y"), told, end: 0, parent: null };
  });
  for (const frame of frames) {
    while (open.length && open.at(-1).row >= frame.row) open.pop().end = frame.index;
    frame.parent = open.at(-1) ?? null;
    open.push(frame);
  }
  for (const frame of open) frame.end = frames.length;
  let zoomed = frames[0], letter = 0;

  const isAbove = (frame) => frame.index < zoomed.index && frame.end > zoomed.index;
  const isBelow = (frame) => frame.index >= zoomed.index && frame.index < zoomed.end;
  const write = (frame, width) => {
    let text = frame.box.querySelector("text"), name = frame.told[0];
    const room = Math.floor((width / 100 * picture.clientWidth - 6) / letter);
    if (!text && room > 2) {
      text = document.createElementNS(picture.namespaceURI, "text");
      text.setAttribute("x", 3);
      text.setAttribute("y", 13);
      frame.box.append(text);
    }
    if (room < name.length) name = room > 2 ? name.slice(0, room - 1) + "\\u2026" : "";
    if (text) text.textContent = name;
  };
  const draw = () => {
    const probe = frames[0].box.querySelector("text");
    probe.textContent = "m".repeat(20);
    letter = probe.getComputedTextLength() / 20 || 7.2;
    for (const frame of frames) {
      const above = isAbove(frame), shown = above || isBelow(frame);
      frame.box.style.display = shown ? "" : "none";
      frame.box.classList.toggle("above", above);
      if (!shown) continue;
      const x = above ? 0 : (frame.x - zoomed.x) / zoomed.width * 100;
      const width = above ? 100 : frame.width / zoomed.width * 100;
      frame.box.setAttribute("x", x + "%");
      frame.box.setAttribute("width", width + "%");
      write(frame, width);
    }
  };
  const zoom = (frame) => { zoomed = frame; draw(); count(); };

  const place = document.createElementNS(picture.namespaceURI, "foreignObject");
  for (const [key, value] of Object.entries({
    x: "100%", y: 4, width: 240, height: 26, transform: "translate(-246 0)",
  })) place.setAttribute(key, value);
  const search = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
  search.type = "search";
  search.placeholder = "/ search, by expression";
  search.setAttribute("aria-label", "search");
  place.append(search);
  picture.append(place);
  const count = () => {
    let wanted = null;
    try {
      wanted = search.value ? new RegExp(search.value, "i") : null;
      search.setCustomValidity("");
    } catch (error) { search.setCustomValidity(error.message); }
    let number = 0, width = 0, end = 0;
    for (const frame of frames) {
      const hit = wanted !== null && wanted.test(frame.told[0]);
      frame.box.classList.toggle("hit", hit);
      if (!hit || !isBelow(frame)) continue;
      number += 1;
      if (frame.index >= end) { width += frame.width; end = frame.end; }
    }
    const share = (100 * width / zoomed.width).toFixed(1);
    line.textContent = !wanted ? hint : `${number} frames match: ${share} % of ${zoomed.told[0]}`;
  };
  search.oninput = count;
  picture.onclick = (event) => {
    const frame = frames.find((one) => one.box.contains(event.target));
    if (frame) zoom(frame);
  };
  picture.onmouseover = (event) => {
    const frame = frames.find((one) => one.box.contains(event.target));
    if (frame) line.textContent = frame.told.join("   "); else count();
  };
  picture.onmouseleave = count;
  document.addEventListener("keydown", (event) => {
    const typing = document.activeElement === search;
    if (event.key === "Escape" && search.value) { search.value = ""; count(); }
    else if (event.key === "Escape") { search.blur(); zoom(frames[0]); }
    else if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); }
    else if (event.key === "Backspace" && !typing && zoomed.parent) zoom(zoomed.parent);
  });
  addEventListener("resize", draw);
  draw();
}
"""
"""Zooms into a frame by a click, and finds frames by an expression; names are cut to their room.

Frames are in preorder, so that those below one come right after it. What is shown of a trace is
only ever set as text.
"""
