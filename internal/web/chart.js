"use strict";
// The live page and the report of a run share this: words for numbers, and charts by uPlot. All text is set as textContent: it may be a
// stranger's.
const paceline = (function () {
  const plain = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
  function number(v) { // three digits, or all of those before the point
    const a = Math.abs(v);
    if (a >= 99.95 || Number.isInteger(v)) return plain.format(v);
    return String(Number(v.toPrecision(a < 1 ? 2 : 3)));
  }
  // As much as fits where there is little room.
  const short = v => v >= 1e8 ? number(v / 1e6) + "\u00a0M" : v >= 1e5 ? number(v / 1e3) + "\u00a0k" : number(v);
  function span(ms) {
    if (ms < 0.5) return ms > 0 ? number(ms) + "\u00a0ms" : "0\u00a0ms";
    if (ms < 999.5) return number(Math.round(ms)) + "\u00a0ms";
    if (ms < 59950) return (ms / 1000).toFixed(1) + "\u00a0s";
    const s = Math.round(ms / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    const two = (a, x, b, y) => a + "\u00a0" + x + (b ? " " + b + "\u00a0" + y : "");
    if (h < 1) return two(m, "min", s % 60, "s");
    if (d < 2) return two(h, "h", m % 60, "min");
    return two(d, "d", h % 24, "h");
  }
  const clock = (ms, parts) => new Date(ms).toLocaleTimeString("en-GB", parts || {hour: "2-digit", minute: "2-digit", second: "2-digit"});

  function element(name, parent, className) {
    const e = document.createElement(name);
    if (className) e.className = className;
    parent.append(e);
    return e;
  }
  function text(e, s) {
    s = String(s);
    if (e.textContent !== s) e.textContent = s;
  }

  const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // A chart has a figure to be drawn in, a title, format for its values, data as uPlot has it, and
  //   x: {time, range, steps, space, right, tick, word}, the horizontal axis: its ends, how far ticks are apart in its unit and in pixels,
  //     room to the right, and words for ticks and for an instant,
  //   series: [{name, colour, dash, fill, width, step, area, low, quiet, with}], of which the quiet ones are not in the legend; an area has
  //   its lower edge in the series number low, and a series is hidden with another by that one's name,
  //   areas: [{between, colour}], where between are the numbers of an upper and a lower edge.
  // Optional are short, a format for the vertical axis; last, by which the legend has the last values while nobody points at others; least,
  // the smallest top of the vertical axis; spanGaps; and toggles, by which a reader can hide series.
  function prepare(chart) {
    const legend = element("ul", chart.figure, "legend");
    chart.series.forEach((s, n) => {
      if (s.quiet) return;
      const li = element("li", legend), holder = chart.toggles ? element("button", li) : li;
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("width", 22);
      svg.setAttribute("height", 8);
      svg.setAttribute("aria-hidden", "true");
      const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
      line.setAttribute("d", "M0 4h22");
      line.setAttribute("stroke-width", s.area ? 8 : 3);
      if (s.area) line.setAttribute("stroke-opacity", 0.3);
      if (s.dash) line.setAttribute("stroke-dasharray", s.dash.join(" "));
      s.sample = line;
      svg.append(line);
      holder.append(svg, s.name + " ");
      s.said = element("b", holder);
      if (chart.toggles) toggle(chart, s, n, holder);
    });
    chart.when = element("li", legend, "when");
    const plot = element("div", chart.figure, "plot");
    plot.setAttribute("role", "img");
    plot.tabIndex = 0;
    chart.plot = plot;
    plot.addEventListener("keydown", e => {
      const n = chart.data ? chart.data[0].length : 0, u = chart.u;
      if (!n || !u) return;
      const at = u.cursor.idx === null || u.cursor.idx === undefined || u.cursor.left < 0 ? n : u.cursor.idx;
      const to = {ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(n - 1, at + 1), Home: 0, End: n - 1}[e.key];
      if (e.key === "Escape") u.setCursor({left: -10, top: -10});
      if (to === undefined) return;
      e.preventDefault();
      u.setCursor({left: u.valToPos(chart.data[0][to], "x"), top: 10});
    });
    plot.addEventListener("blur", () => chart.u && chart.u.setCursor({left: -10, top: -10}));
    new ResizeObserver(() => chart.u && chart.u.setSize({width: plot.clientWidth, height: plot.clientHeight})).observe(plot);
    dark.addEventListener("change", () => chart.u && build(chart));
  }

  // A button of the legend hides its series, and the quiet ones that go with it.
  function toggle(chart, s, n, button) {
    button.type = "button";
    button.title = "Show or hide";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const show = s.hidden === true;
      chart.series.forEach((other, i) => {
        if (i !== n && other.with !== s.name) return;
        other.hidden = !show;
        chart.u.setSeries(i + 1, {show});
      });
      button.setAttribute("aria-pressed", String(show));
    });
  }

  function legend(chart) {
    if (!chart.u || !chart.data) return;
    const xs = chart.data[0], i = chart.u.cursor.idx, at = chart.u.cursor.left >= 0 && i !== null && i !== undefined;
    const k = at ? i : xs.length - 1;
    chart.series.forEach((s, n) => {
      if (s.quiet) return;
      const v = k >= 0 ? chart.data[n + 1][k] : null, from = s.area ? chart.short(chart.data[s.low][k]) + " – " : "";
      text(s.said, !at && !chart.last ? "" : v === null || v === undefined ? "–" : from + chart.format(v));
    });
    text(chart.when, at ? chart.x.word(xs[k]) : "");
  }

  function build(chart) {
    if (chart.u) chart.u.destroy();
    const ink = css("muted"), grid = css("grid");
    const axis = more => Object.assign({stroke: ink, font: "12px system-ui, sans-serif", grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 4}}, more);
    for (const s of chart.series) if (s.sample) s.sample.setAttribute("stroke", css(s.colour));
    chart.u = new uPlot({
      width: chart.plot.clientWidth, height: chart.plot.clientHeight, legend: {show: false}, padding: [8, chart.x.right || 18, 0, 0],
      cursor: {drag: {x: false, y: false}, y: false, points: {size: 7}},
      scales: {
        x: {time: chart.x.time, range: () => chart.x.range(chart)},
        y: {range: (u, lo, hi) => [0, Math.max(chart.least || 1e-6, (hi || 0) * 1.1)]},
      },
      axes: [
        axis({space: chart.x.space, size: 24, values: (u, list) => list.map(v => chart.x.tick(v)), incrs: chart.x.steps}),
        axis({space: 32, size: 58, values: (u, list) => list.map(v => (chart.short || chart.format)(v))}),
      ],
      series: [{}].concat(chart.series.map(s => ({
        label: s.name, stroke: css(s.colour), width: s.width === undefined ? 2 : s.width, dash: s.dash, fill: s.fill ? css(s.colour) + "2e" : undefined,
        paths: s.step ? uPlot.paths.stepped({align: 1}) : undefined, points: {show: lone}, spanGaps: !!chart.spanGaps, show: !s.hidden,
      }))),
      bands: (chart.areas || []).map(a => ({series: a.between, fill: css(a.colour) + "2e"})),
      hooks: {setCursor: [() => legend(chart)]},
    }, chart.data, chart.plot);
  }
  // Only points without a neighbour are drawn as points: there is no line to them.
  function lone(u, si) {
    const d = u.data[si];
    if (u.series[si].spanGaps) return d.filter(v => v !== null).length === 1;
    return d.length < 3 && d.some(v => v !== null) || d.some((v, i) => v !== null && (i === 0 || d[i - 1] === null) && (i === d.length - 1 || d[i + 1] === null));
  }

  // Draws a chart whose data are new.
  function draw(chart) {
    if (chart.u) chart.u.setData(chart.data);
    else build(chart);
    legend(chart);
  }

  // Says in words what a chart shows, for readers who do not see it.
  function describe(chart, over) {
    chart.plot.setAttribute("aria-label", chart.title + over + ": " + chart.series.map((s, n) => {
      const seen = chart.data[n + 1].filter(v => v !== null);
      if (s.quiet) return "";
      const last = chart.last && seen.length ? ", now " + chart.format(seen[seen.length - 1]) : "";
      return s.name + last + (seen.length ? ", at most " + chart.format(seen.reduce((a, b) => Math.max(a, b))) : ", nothing yet");
    }).filter(Boolean).join("; ") + ". Arrow keys show values.");
  }

  return {plain, number, short, span, clock, element, text, prepare, draw, describe};
})();
