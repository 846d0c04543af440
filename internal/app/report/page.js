"use strict";
// Draws the charts of lines, whose data are in the page.
(function () {
  const {number, span, prepare, draw, describe} = paceline;
  const hues = ["blue", "orange", "green", "pink", "violet", "brown"];
  const dashes = {pink: [7, 3], violet: [2, 3], brown: [10, 3, 2, 3]}; // the last hues are told apart by more than their colour
  const x = {
    time: false,
    range: chart => [chart.data[0][0], chart.data[0][chart.data[0].length - 1] + (chart.data[0].length > 1 ? 0 : 1)],
    steps: [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800],
    space: 80, right: 28,
    tick: v => v === 0 ? "0" : v < 60 ? number(v) + "\u00a0s" : span(v * 1000),
    word: v => "after " + span(v * 1000),
  };

  for (const c of JSON.parse(document.getElementById("data").textContent) || []) {
    const chart = {
      title: c.title, figure: document.querySelector("#chart-" + c.id + " .drawing"), data: [c.x], series: [], areas: [], x, toggles: true, spanGaps: true,
      format: v => number(v) + (c.unit ? "\u00a0" + c.unit : ""), short: number,
    };
    let hue = 0;
    const add = (s, values) => {
      chart.data.push(values);
      return chart.series.push(Object.assign(s, {step: c.step}));
    };
    let many = ""; // the band that the thin lines are of
    for (const l of c.lines) if (l.low) many = l.name;
    for (const l of c.lines) {
      if (l.kind === "thin") add({name: l.name, colour: "bar", width: 1, quiet: true, with: many}, l.y);
      else if (l.kind === "reference") add({name: l.name, colour: "ink", width: 1.5, dash: [5, 4]}, l.y);
      else {
        const name = l.colour || hues[hue++ % hues.length], colour = "line-" + name;
        if (l.low) {
          const low = add({name: l.name, colour, width: 0, quiet: true, with: l.name}, l.low);
          chart.areas.push({between: [add({name: l.name, colour, width: 0, area: true, low}, l.y), low], colour});
        } else add({name: l.name, colour, dash: dashes[name], width: l.kind === "strong" ? 2.8 : 1.8}, l.y);
      }
    }
    prepare(chart);
    draw(chart);
    describe(chart, "");
  }
})();
