"use strict";
(function () {
  const svgSpace = "http://www.w3.org/2000/svg";
  // The same digits as in the tables.
  function number(v) {
    const a = Math.abs(v);
    if (v === 0) return "0";
    if (a >= 1e9 || a < 0.001) return v.toExponential(2).replace(/\.?0*e\+?/, "e");
    if (a >= 99.95) return v.toLocaleString("en", {maximumFractionDigits: 0});
    return String(Number(v.toPrecision(3)));
  }
  const withUnit = (v, unit) => unit ? number(v) + "\u00a0" + unit : number(v);
  const place = (axis, v) => axis.log ? Math.log(v / axis.lo) / Math.log(axis.hi / axis.lo) : (v - axis.lo) / (axis.hi - axis.lo);
  const value = (axis, p) => axis.log ? axis.lo * Math.pow(axis.hi / axis.lo, p) : axis.lo + (axis.hi - axis.lo) * p;

  // What a series is at x: the value that holds there, or that of the line between two points. Nothing before its first
  // point, after its last and in gaps.
  function at(s, list, x, slack) {
    const xs = s.x, n = xs.length;
    if (n === 1) return Math.abs(x - xs[0]) <= slack ? list[0] : null;
    if (x < xs[0] || x > xs[n - 1]) return null;
    let lo = 0, hi = n;
    while (hi - lo > 1) {
      const mid = (lo + hi) >> 1;
      if (xs[mid] <= x) lo = mid; else hi = mid;
    }
    if (s.step || lo + 1 === n || xs[lo] === x) return list[lo];
    if (s.gaps && s.gaps.includes(lo + 1)) return null;
    const part = (x - xs[lo]) / (xs[lo + 1] - xs[lo]);
    return list[lo] * (1 - part) + list[lo + 1] * part;
  }

  function element(name, parent, text) {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    parent.append(e);
    return e;
  }

  for (const panel of JSON.parse(document.getElementById("data").textContent) || []) {
    const section = document.querySelector('[data-panel="' + panel.id + '"]');
    const plot = section.querySelector(".plot"), tip = plot.querySelector(".tip");
    const pointer = plot.querySelector(".pointer"), cross = pointer.querySelector(".cross");
    const high = Number(cross.getAttribute("y2"));
    const off = new Set();
    let part = 0, shown = false;

    function hide() {
      shown = false;
      tip.hidden = true;
      pointer.setAttribute("hidden", "");
    }

    function show(p) {
      part = Math.min(1, Math.max(0, p));
      shown = true;
      const x = value(panel.x, part), slack = Math.abs(value(panel.x, Math.min(1, part + 0.02)) - x) || 0;
      tip.replaceChildren();
      pointer.querySelectorAll("circle").forEach(c => c.remove());
      element("b", tip, panel.x.name.replace(/ \([^()]*\)$/, "") + " " + withUnit(x, panel.x.unit));
      for (const s of panel.series) {
        if (off.has(s.index)) continue;
        const y = at(s, s.y, x, slack);
        if (y === null) continue;
        const row = element("div", tip);
        element("span", row, s.name);
        if (s.kind === "band") {
          element("span", row, number(at(s, s.low, x, slack)) + " – " + withUnit(y, panel.y.unit));
          continue;
        }
        element("span", row, withUnit(y, panel.y.unit));
        const line = plot.querySelector('path[data-index="' + s.index + '"]'); // a reference has none
        const dot = document.createElementNS(svgSpace, "circle");
        dot.setAttribute("class", "dot-at " + (line ? line.getAttribute("class").match(/hue\d+/)[0] : ""));
        dot.setAttribute("cx", part * 100 + "%");
        dot.setAttribute("cy", (1 - place(panel.y, y)) * high);
        dot.setAttribute("r", 4);
        pointer.append(dot);
      }
      cross.setAttribute("x1", part * 100 + "%");
      cross.setAttribute("x2", part * 100 + "%");
      pointer.removeAttribute("hidden");
      tip.hidden = false;
      // Beside the pointer, on the side that has room; where neither has, as far as the plot goes.
      const wide = plot.clientWidth, own = tip.offsetWidth, here = part * wide;
      const left = here + 12 + own <= wide ? here + 12 : here - 12 - own;
      tip.style.left = Math.max(Math.min(left, wide - own), 0) + "px";
    }

    plot.addEventListener("pointermove", e => {
      const box = plot.getBoundingClientRect();
      show((e.clientX - box.left) / box.width);
    });
    plot.addEventListener("pointerdown", e => {
      const box = plot.getBoundingClientRect();
      show((e.clientX - box.left) / box.width);
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", e => {
      const to = {ArrowLeft: part - 0.02, ArrowRight: part + 0.02, Home: 0, End: 1}[e.key];
      if (e.key === "Escape") hide();
      if (to === undefined) return;
      e.preventDefault();
      show(shown || e.key === "Home" || e.key === "End" ? to : part);
    });
    section.querySelectorAll(".legend button").forEach(button => button.addEventListener("click", () => {
      const index = Number(button.dataset.index), hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!hidden));
      off[hidden ? "add" : "delete"](index);
      plot.querySelectorAll('path[data-index="' + index + '"]').forEach(line => line.toggleAttribute("hidden", hidden));
      if (shown) show(part);
    }));
  }
})();
