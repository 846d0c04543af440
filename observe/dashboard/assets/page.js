"use strict";
// The page is told of a past once and of a frame every second, and shows one of its sources. All text that comes from there is set as
// textContent: it may be a stranger's.
(function () {
  const {plain, number, short, span, clock, element, text, prepare, draw, describe} = paceline;
  const $ = id => document.getElementById(id);
  const kept = 15 * 60e3; // ms of history
  const gap = 15e3; // with no point for so long, nothing is drawn
  const stale = 3500; // ms without a frame

  // ---- Words. ----

  const money = millionths => {
    const v = millionths / 1e6;
    return v.toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: Math.abs(v) < 1 ? 4 : 2});
  };
  const amount = (v, unit) => unit === "money" ? money(v) : number(v);
  // Of a bucket that was full, more than its ceiling may have gone: that is no more than all of it.
  const percent = share => share >= 1 ? "100\u00a0%" : number(share >= 0.1 ? Math.floor(share * 100 + 1e-9) : Number((share * 100).toPrecision(2))) + "\u00a0%"; // only all is 100 %
  const ns = v => span(v / 1e6);
  const waited = v => v > 0 ? ns(v) : "–";
  function when(ms) { // with the day, if it is not today's
    const d = new Date(ms);
    return (d.toDateString() === new Date(now()).toDateString() ? "" : d.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) + " ") + clock(ms);
  }
  const instant = text => text ? Date.parse(text) : NaN;
  // in 4.2 s, or now if it is past. Where the next goes every 10 ms, the number would only flicker.
  const ahead = ms => ms <= now() ? "now" : ms - now() < 50 ? "within 50\u00a0ms" : "in " + span(ms - now());
  const whom = w => [w.host, w.key && "key " + w.key, w.model && "model " + w.model, w.route, w.client && "client " + w.client].filter(Boolean).join(", ");

  // ---- What was told. ----

  let told = null; // the latest frame
  let arrived = 0; // when it came, by performance.now
  let chosen = 0; // the source that is shown
  let version = "", slot = 5000;
  const pasts = []; // by source: {name, since, points, events}
  // The server's time, which is what its instants are of.
  const now = () => told ? told.at : Date.now();

  const columns = ["at", "sent", "refused", "failed", "tokens", "money", "waiting", "in_flight", "share", "p50_ms", "p99_ms"];
  function past(e) {
    const p = JSON.parse(e.data);
    if (version && version !== p.version) {
      location.reload();
      return;
    }
    version = p.version;
    slot = p.slot_ms;
    $("title").textContent = p.title;
    $("forms").hidden = !p.forms;
    // Sources come and go: what is looked at is still looked at, and what is known of the others is not mixed up.
    const was = new Map(pasts.map(q => [q.name, q]));
    const at = pasts[chosen] ? p.sources.findIndex(s => s.name === pasts[chosen].name) : -1;
    if (at >= 0) chosen = at;
    p.sources.forEach((s, i) => {
      const points = (s.history.at || []).map((_, k) => Object.fromEntries(columns.map(c => [c, s.history[c][k]])));
      const old = was.get(s.name) || {points: [], events: new Map()};
      was.delete(s.name);
      // What the server does not know any more since it was restarted, this page still does.
      const before = points.length ? old.points.filter(q => slotOf(q) < slotOf(points[0])) : old.points;
      pasts[i] = {name: s.name, since: s.since, points: before.concat(points), events: old.events};
      heard(pasts[i], s.events || []);
    });
    pasts.length = p.sources.length;
  }
  const slotOf = p => Math.floor(p.at / slot);

  // The numbers of events begin anew with the server.
  function heard(p, events) {
    for (const e of events) p.events.set(p.since + " " + e.number, e);
    const extra = p.events.size - 200;
    if (extra > 0) [...p.events].sort((a, b) => instant(a[1].last) - instant(b[1].last)).slice(0, extra).forEach(([k]) => p.events.delete(k));
  }

  function frame(e) {
    told = JSON.parse(e.data);
    arrived = performance.now();
    told.sources.forEach((s, i) => {
      const p = pasts[i];
      const last = p.points[p.points.length - 1];
      if (last && slotOf(last) >= slotOf(s.point)) p.points[p.points.length - 1] = s.point;
      else p.points.push(s.point);
      while (p.points[0].at < s.point.at - kept - 2 * slot) p.points.shift();
      p.since = s.since;
      heard(p, s.events || []);
    });
    show();
  }

  // What a count grew by in the last so many milliseconds, and how long that was; restarts are skipped.
  function grown(points, column, ms) {
    let sum = 0, time = 0;
    for (let i = points.length - 1; i > 0 && points[i].at > now() - ms; i--) {
      const d = points[i][column] - points[i - 1][column], t = points[i].at - points[i - 1].at;
      if (d < 0) continue;
      sum += d;
      time += t;
    }
    return {sum, time, per: unit => time > 0 ? sum / time * unit : 0};
  }

  // ---- Tables. ----

  const signs = {ok: "●", wait: "▲", stop: "■", none: "○"};
  // A cell is {main, sub, bar, full, stop, mark}, or its main alone.
  function put(td, cell) {
    if (typeof cell !== "object") cell = {main: cell};
    const parts = td.parts || (td.parts = {});
    const part = (name, make) => parts[name] || (parts[name] = make());
    if (cell.mark || parts.mark) {
      const m = part("mark", () => { const e = element("span", td, "mark"); e.setAttribute("aria-hidden", "true"); td.prepend(e); return e; });
      m.dataset.mark = cell.mark || "";
      text(m, signs[cell.mark] || "");
    }
    text(part("main", () => element("bdi", td, "main")), cell.main);
    if (cell.bar !== undefined || parts.bar) {
      const b = part("bar", () => { const e = element("span", td, "bar"); e.setAttribute("aria-hidden", "true"); element("span", e); return e; });
      td.classList.add("barred");
      b.firstChild.style.width = Math.max(0, Math.min(1, cell.bar || 0)) * 100 + "%";
      b.toggleAttribute("data-full", !!cell.full);
      b.toggleAttribute("data-stop", !!cell.stop);
    }
    if (cell.sub || parts.sub) text(part("sub", () => element("bdi", td, "sub")), cell.sub || "");
  }

  // A table whose rows stay the same elements while what they are about stays: a reader's place and a selection survive. They change their
  // order only now and then, and not under a pointer or a finger.
  function table(id, none) {
    const t = $(id), body = t.tBodies[0], heads = [...t.tHead.rows[0].cells];
    // Where a style sheet lays out rows as blocks, browsers forget that it is a table.
    if (heads.length > 3 || id === "events-table") t.classList.add("cards");
    t.setAttribute("role", "table");
    t.tHead.setAttribute("role", "rowgroup");
    body.setAttribute("role", "rowgroup");
    t.tHead.rows[0].setAttribute("role", "row");
    heads.forEach(h => h.setAttribute("role", "columnheader"));
    const rows = new Map();
    let ordered = 0;
    function make() {
      const tr = document.createElement("tr");
      tr.setAttribute("role", "row");
      heads.forEach((h, i) => {
        const c = element(i ? "td" : "th", tr, h.className);
        c.setAttribute("role", i ? "cell" : "rowheader");
        if (i) c.dataset.label = h.textContent;
        else c.scope = "row";
      });
      return tr;
    }
    const empty = document.createElement("tr");
    empty.setAttribute("role", "row");
    const only = element("td", empty, "none");
    only.setAttribute("role", "cell");
    only.colSpan = heads.length;
    only.textContent = none;
    return function (list, key, cells, foot) {
      const seen = new Map();
      for (const item of list) {
        let k = key(item);
        for (let n = 2; seen.has(k); n++) k = key(item) + "\n" + n;
        const tr = rows.get(k) || make();
        cells(item).forEach((c, i) => put(tr.cells[i], c));
        seen.set(k, tr);
      }
      if (foot) {
        const tr = rows.get("\0sum") || make();
        tr.classList.add("sum");
        foot.forEach((c, i) => put(tr.cells[i], c));
        seen.set("\0sum", tr);
      }
      for (const [k, tr] of rows) if (!seen.has(k)) { tr.remove(); rows.delete(k); }
      const fresh = [...seen.keys()].some(k => !rows.has(k));
      for (const [k, tr] of seen) rows.set(k, tr);
      if (fresh || performance.now() - ordered > 5000 && !body.matches(":hover")) {
        ordered = performance.now();
        let at = body.firstChild;
        for (const tr of seen.values()) {
          if (tr === at) at = at.nextSibling;
          else body.insertBefore(tr, at);
        }
      }
      if (seen.size) empty.remove();
      else body.append(empty);
    };
  }

  const tables = {
    sources: table("sources-table", ""),
    paused: table("paused-table", ""),
    limits: table("limits-table", "No limit is known yet: they are here when a request has come that they are for."),
    clients: table("clients-table", "Nobody has asked yet."),
    keys: table("keys-table", ""),
    events: table("events-table", "Nothing yet: refusals, pauses and bans are told here."),
    waits: table("waits-table", "No request has been in line yet."),
    upstream: table("upstream-table", "No answer has come yet."),
    counts: table("counts-table", ""),
  };

  // ---- A list of which a frame has only the first: all of it is asked for while somebody wants to see it. ----

  function more(list, show) {
    const box = $(list + "-more");
    const button = element("button", box);
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-controls", list + "-table");
    const rest = element("span", box);
    rest.hidden = true;
    const label = element("label", rest);
    label.append("Find ");
    const find = element("input", label);
    find.type = "search";
    find.maxLength = 200;
    const back = element("button", rest), on = element("button", rest), place = element("span", rest);
    back.type = on.type = "button";
    back.textContent = "Back";
    on.textContent = "On";
    place.setAttribute("role", "status");
    rest.className = "more";
    let open = false, from = 0, asked = 0, got = null, number = 0;
    async function ask() {
      const mine = ++asked;
      let a = null;
      try {
        const r = await fetch("all.json?source=" + chosen + "&list=" + list + "&from=" + from + "&find=" + encodeURIComponent(find.value));
        if (r.ok) a = await r.json();
      } catch (e) { /* the server is away, which the page says elsewhere */ }
      if (mine !== asked || !open || !a) return;
      got = a;
      draw();
    }
    function draw() {
      back.disabled = got.from === 0;
      on.disabled = got.from + got.rows.length >= got.found;
      text(place, got.found ? number3(got.from + 1) + " to " + number3(got.from + got.rows.length) + " of " + number3(got.found) : "None of " + number3(got.total));
      show(got.rows, null);
    }
    const number3 = v => plain.format(v);
    function close() { open = false; from = 0; got = null; find.value = ""; rest.hidden = true; asked++; }
    button.addEventListener("click", () => {
      if (open) close();
      else { open = true; rest.hidden = false; ask(); find.focus(); }
      button.setAttribute("aria-expanded", String(open));
      update(number);
    });
    find.addEventListener("input", () => { from = 0; ask(); });
    back.addEventListener("click", () => { from = Math.max(0, from - 500); ask(); });
    on.addEventListener("click", () => { from += 500; ask(); });
    // Whether the rows are all of them now, and not those of the frame.
    function update(all, shown) {
      number = all;
      box.hidden = !open && all <= (shown === undefined ? 0 : shown);
      text(button, open ? "Show the first only" : "Show all " + plain.format(all));
      if (open && told && told.number % 5 === 0) ask();
      if (!open) button.setAttribute("aria-expanded", "false");
      else if (got) draw();
      return open;
    }
    return {update, close};
  }

  const limitKey = l => JSON.stringify([l.host, l.key, l.model, l.route, l.client, l.limit, l.unit, l.window_ns]);
  function limitCells(l) {
    const away = instant(l.paused_until), next = instant(l.next);
    const per = l.window_ns > 0 ? amount(l.per_window, l.unit) + " in " + ns(l.window_ns) + (l.fits > 0 ? ", found to be " + amount(l.fits, l.unit) : "") : "";
    const name = l.limit + (l.unit && l.unit !== l.limit ? " (" + l.unit + ")" : "");
    const part = l.allowed > 0 ? l.used / l.allowed : 0;
    const more = l.per_window > 0 ? l.recent / l.per_window : 0; // a full bucket gives what it held beside what flows in
    let go;
    if (away > now()) go = {main: "away until " + when(away), sub: ahead(away) + (l.why ? ": " + l.why : ""), mark: "stop"};
    else if (l.next_unknown) go = {main: "when an answer comes", mark: "wait"};
    else if (next > now()) go = {main: ahead(next), sub: when(next), mark: "wait"};
    else go = {main: "now", sub: l.waiting_reserve > 0 ? number(l.waiting_reserve) + " leave the rest free (reserve)" : "", mark: "ok"};
    return [
      {main: name, sub: [whom(l), per].filter(Boolean).join(" · ")},
      {main: amount(l.used, l.unit) + " of " + amount(l.allowed, l.unit), bar: part, full: part >= 1, stop: away > now(), sub: l.open > 0 && l.window_ns > 0 ? amount(l.open, l.unit) + " not answered" : ""},
      {main: percent(l.share), bar: l.share, full: l.share >= 0.9, sub: more > 1.005 ? number(Math.floor(more * 100)) + "\u00a0% with what it held" : ""},
      go,
      number(l.waiting),
    ];
  }
  const showLimits = (rows, foot) => tables.limits(rows, limitKey, limitCells, foot);

  function clientCells(c) {
    const last = instant(c.last_goes);
    return [
      {main: c.client || "everybody", sub: c.weight !== 1 && c.weight > 0 ? "weight " + number(c.weight) : ""},
      number(c.waiting), waited(c.longest_wait_ns),
      c.waiting === 0 ? "–" : isNaN(last) ? "not known" : last - now() < 50 ? ahead(last) : ahead(last) + " · " + when(last),
      percent(c.share), number(c.in_flight), number(c.accepted), number(c.limited),
    ];
  }
  const showClients = (rows, foot) => tables.clients(rows, c => c.client, clientCells, foot);

  const showKeys = rows => tables.keys(rows, k => JSON.stringify([k.host, k.key]), k => {
    const until = instant(k.until);
    return [
      {main: k.key || "(none)", sub: k.host || ""},
      {main: k.state + (until > now() ? " until " + when(until) : ""), sub: [until > now() ? ahead(until) : "", k.why || ""].filter(Boolean).join(": "), mark: k.state === "ok" ? "ok" : k.state === "paused" ? "wait" : "stop"},
      number(k.in_flight), number(k.accepted), number(k.limited),
    ];
  });

  const mores = {
    limits: more("limits", showLimits),
    clients: more("clients", showClients),
    keys: more("keys", showKeys),
  };

  // ---- Charts. ----

  // What a count grew by per so many milliseconds.
  const rate = (column, unit, scale) => (p, q) => {
    const d = p[column] - q[column];
    return d < 0 ? null : d / (p.at - q.at) * unit * (scale || 1);
  };
  const level = (column, scale) => p => p[column] === null ? null : p[column] * (scale || 1);
  const charts = [
    {id: "rate", title: "Requests a second", format: number, least: 1, series: [
      {name: "sent", colour: "blue", value: rate("sent", 1000), fill: true}, {name: "refused", colour: "pink", dash: [4, 3], value: rate("refused", 1000)}]},
    {id: "share", title: "Of the ceiling", format: v => number(v) + "\u00a0%", least: 100, series: [{name: "used", colour: "blue", value: p => p.share === null ? null : Math.min(100, p.share * 100), fill: true}]},
    {id: "waiting", title: "In line and under way", format: number, least: 4, series: [
      {name: "in line", colour: "orange", value: level("waiting"), fill: true}, {name: "under way", colour: "green", dash: [6, 3], value: level("in_flight")}]},
    {id: "latency", title: "Answers take", format: span, least: 10, series: [
      {name: "half within", colour: "blue", value: level("p50_ms")}, {name: "99 % within", colour: "violet", dash: [6, 3], value: level("p99_ms")}]},
    {id: "tokens", title: "Tokens a minute", format: short, needs: "tokens", series: [{name: "tokens", colour: "violet", value: rate("tokens", 60e3), fill: true}]},
    {id: "money", title: "Money an hour", format: v => money(v * 1e6), needs: "money", series: [{name: "money", colour: "green", value: rate("money", 3600e3, 1e-6), fill: true}]},
  ];

  // Each chart has a title, its plot, and below it the same as a table by the minute.
  function add(chart) {
    const figure = element("figure", $("charts"), "chart");
    figure.id = "chart-" + chart.id;
    element("figcaption", figure).textContent = chart.title;
    const minute = {hour: "2-digit", minute: "2-digit"};
    chart.x = {time: true, range: c => reach(c.points), steps: [60, 120, 300, 600, 900], space: 48, tick: v => clock(v * 1000, minute), word: v => clock(v * 1000)};
    chart.figure = figure;
    chart.last = true;
    prepare(chart);
    const details = element("details", figure);
    element("summary", details).textContent = "As a table";
    const t = element("table", details);
    element("caption", t, "unseen").textContent = chart.title + ", by the minute";
    const head = element("tr", element("thead", t));
    for (const name of ["Minute"].concat(chart.series.map(s => s.name))) {
      const th = element("th", head, name === "Minute" ? "" : "n");
      th.scope = "col";
      th.textContent = name;
    }
    chart.body = element("tbody", t);
    details.addEventListener("toggle", () => tabulate(chart, details));
    chart.details = details;
  }

  // As long as there is little, it is shown larger.
  function reach(points) {
    const end = now(), first = points && points.length ? points[0].at : end;
    return [(end - Math.min(kept, Math.max(60e3, end - first))) / 1000, end / 1000];
  }

  function plot(chart, points) {
    const needed = !chart.needs || points.some(p => p[chart.needs] > 0);
    chart.figure.hidden = !needed;
    if (!needed) return;
    chart.points = points;
    const data = [[]].concat(chart.series.map(() => []));
    points.forEach((p, i) => {
      const q = points[i - 1], far = !q || p.at - q.at > gap;
      if (q && far) {
        data[0].push((q.at + p.at) / 2000);
        chart.series.forEach((s, n) => data[n + 1].push(null));
      }
      data[0].push(p.at / 1000);
      chart.series.forEach((s, n) => data[n + 1].push(s.value.length > 1 ? far ? null : s.value(p, q) : s.value(p)));
    });
    chart.data = data;
    draw(chart);
    describe(chart, " over the last 15 minutes");
    if (chart.details.open) tabulate(chart, chart.details);
  }

  function tabulate(chart, details) {
    if (!details.open || !chart.data) return;
    const minutes = new Map();
    chart.data[0].forEach((t, i) => {
      const m = Math.floor(t / 60) * 60;
      const row = minutes.get(m) || minutes.set(m, chart.series.map(() => [])).get(m);
      chart.series.forEach((s, n) => chart.data[n + 1][i] !== null && row[n].push(chart.data[n + 1][i]));
    });
    const list = [...minutes].reverse();
    while (chart.body.rows.length > list.length) chart.body.lastChild.remove();
    list.forEach(([m, row], i) => {
      let tr = chart.body.rows[i];
      if (!tr) {
        tr = element("tr", chart.body);
        element("th", tr).scope = "row";
        chart.series.forEach(() => element("td", tr, "n"));
      }
      text(tr.cells[0], clock(m * 1000, {hour: "2-digit", minute: "2-digit"}));
      row.forEach((vs, n) => text(tr.cells[n + 1], vs.length ? chart.format(vs.reduce((a, b) => a + b) / vs.length) : "–"));
    });
  }
  charts.forEach(add);

  // ---- All of it. ----

  const kinds = {
    nothing: ["none", "nothing yet"], idle: ["none", "idle"], free: ["ok", "nobody waits"], full: ["ok", "as fast as allowed"],
    waiting: ["wait", "waiting"], paused: ["stop", "staying away"], down: ["stop", "server away"],
  };
  const happened = {refused: "stop", paused: "wait", banned: "stop", denied: "stop", down: "stop", alone: "wait", back: "ok", wrong: "wait"};

  // Lines about what no source knows.
  function showBeside(lines) {
    const list = $("beside-lines");
    $("beside").hidden = !lines.length;
    while (list.children.length > lines.length) list.lastChild.remove();
    while (list.children.length < lines.length) element("li", list);
    lines.forEach((line, i) => text(list.children[i], line));
  }

  function show() {
    $("main").hidden = false;
    chosen = Math.min(chosen, told.sources.length - 1);
    const s = told.sources[chosen];
    if (!s) {
      $("main").hidden = true;
      link("live", "live · nothing to show: the page was given no source");
      return;
    }
    const points = pasts[chosen].points;
    document.title = (s.waiting ? plain.format(s.waiting) + " in line – " : "") + (s.name || $("title").textContent);
    showSources();
    showBeside(told.beside || []);
    showVerdict(s);
    showTiles(s, points);
    $("paused").hidden = !s.paused.length;
    tables.paused(s.paused, p => whom(p) + p.since, p => [
      {main: whom(p) || "everybody", mark: "stop"}, p.why || "",
      p.down || !p.until ? {main: "not known", sub: p.next ? "next try " + ahead(instant(p.next)) : ""} : {main: when(instant(p.until)), sub: ahead(instant(p.until))},
      p.since ? {main: when(instant(p.since)), sub: span(now() - instant(p.since)) + " ago"} : "",
    ]);
    if (!mores.limits.update(s.all.limits, s.limits.length)) showLimits(s.limits);
    const left = s.all.clients - s.clients.length;
    if (!mores.clients.update(s.all.clients, s.clients.length)) {
      showClients(s.clients, left > 0 ? clientCells(Object.assign({}, s.rest, {client: plain.format(left) + " more", weight: 1})) : null);
    }
    $("keys").hidden = !s.keys.length;
    if (!mores.keys.update(s.all.keys, s.keys.length)) showKeys(s.keys);
    showEvents(pasts[chosen].events);
    tables.waits(s.waits, w => w.limit, w => [w.limit || "none: it went at once", number(w.count), ns(w.mean_ns), ns(w.p50_ns), ns(w.p99_ns)]);
    tables.upstream(s.upstream, u => u.host, u => [u.host || "(all)", number(u.count), ns(u.p50_ns), ns(u.p90_ns), ns(u.p99_ns), ns(u.max_ns)]);
    tables.counts([
      ["served", s.accepted, ""], ["refused by a limit of the server", s.limited, "refused"], ["failed", s.failed, "failed"], ["without an answer", s.unknown, ""],
      ["not written", s.unsent, ""], ["sent again", s.resent, ""], ["sent, all of them", s.sent, "sent"], ["never fits a limit", s.never, ""],
      ["told that it would take too long", s.late, ""], ["turned away: the line was full", s.full, ""], ["gave up waiting", s.cancelled, ""],
    ].filter(r => r[1] > 0 || r[2]), r => r[0], r => [r[0], number(r[1]), r[2] ? number(grown(points, r[2], kept).sum) : "–"]);
    charts.forEach(c => plot(c, points));
  }

  function showSources() {
    $("sources").hidden = told.sources.length < 2;
    if (told.sources.length < 2) return;
    const list = told.sources.map((s, i) => ({s, i}));
    tables.sources(list, x => String(x.i), x => {
      const [mark, word] = kinds[x.s.verdict.kind] || ["none", x.s.verdict.kind];
      return ["", {main: word, mark}, number(x.s.waiting), x.s.point.share === null ? "–" : percent(x.s.point.share), number(x.s.limited)];
    });
    [...$("sources-table").tBodies[0].rows].forEach((tr, i) => {
      const th = tr.cells[0];
      let b = th.querySelector("button");
      if (!b) {
        th.replaceChildren();
        b = element("button", th);
        b.type = "button";
        b.addEventListener("click", () => {
          chosen = i;
          for (const m of Object.values(mores)) m.close();
          show();
        });
        th.parts = {main: element("span", th)};
      }
      text(b, told.sources[i].name || "Source " + (i + 1));
      b.setAttribute("aria-current", String(i === chosen));
    });
  }

  let announced = "", announcedAt = -1e9;
  function showVerdict(s) {
    const v = s.verdict, until = instant(v.until), [mark] = kinds[v.kind] || ["none"];
    $("verdict").dataset.kind = v.kind;
    const h = $("verdict-text");
    if (!h.parts) {
      h.parts = {mark: element("span", h, "mark"), main: element("bdi", h)};
      h.parts.mark.setAttribute("aria-hidden", "true");
    }
    h.parts.mark.dataset.mark = mark;
    text(h.parts.mark, signs[mark]);
    text(h.parts.main, v.text);
    text($("verdict-next"), until > now() ? "the next may go " + ahead(until) + ", at " + when(until) : "");
    // A screen reader is told when it is another state, and not more often than it can be listened to.
    if (v.kind !== announced && performance.now() - announcedAt > 15e3) {
      announced = v.kind;
      announcedAt = performance.now();
      text($("said"), v.text);
    }
  }

  function showTiles(s, points) {
    text($("tile-waiting"), number(s.waiting));
    text($("tile-longest"), s.waiting ? "the first for " + ns(s.longest_wait_ns) : "nobody waits");
    text($("tile-flight"), number(s.in_flight));
    text($("tile-sent"), number(s.sent) + " sent in all");
    // More than the limits allow is a window that began empty: it lasts for no rate.
    const going = grown(points, "sent", 10e3).per(1000);
    text($("tile-rate"), s.allowed > 0 && going > s.allowed * 1.02 ? "–" : number(going) + "/s");
    text($("tile-share"), s.point.share === null ? "no limit is known" : percent(s.point.share) + " of the ceiling");
    text($("tile-refused"), number(grown(points, "refused", kept).sum));
    text($("tile-refused-all"), "in 15 min, " + number(s.limited) + " in all");
    const tokens = Math.max(s.used.tokens || 0, (s.used.input_tokens || 0) + (s.used.output_tokens || 0));
    $("tile-tokens-box").hidden = !tokens;
    text($("tile-tokens"), short(grown(points, "tokens", 60e3).per(60e3)) + "/min");
    text($("tile-tokens-all"), number(tokens) + " in all");
    $("tile-money-box").hidden = !s.used.money;
    text($("tile-money"), money(grown(points, "money", kept).per(3600e3)) + "/h");
    text($("tile-money-all"), money(s.used.money || 0) + " in all");
  }

  function showEvents(events) {
    const list = [...events].sort((a, b) => instant(b[1].last) - instant(a[1].last) || b[1].number - a[1].number).slice(0, 100);
    tables.events(list, x => x[0], ([, e]) => [
      when(instant(e.last)),
      {main: e.kind, mark: happened[e.kind] || "none"},
      {main: e.text, sub: [whom(e), e.count > 1 ? number(e.count) + " times since " + when(instant(e.at)) : ""].filter(Boolean).join(" · ")},
    ]);
  }

  // ---- The link to the server. ----

  let source = null, again = 0, opened = 0, lost = 0;
  function link(state, words) {
    const m = document.querySelector("#link .mark");
    const [mark] = {live: ["ok"], stale: ["stop"], connecting: ["wait"]}[state];
    m.dataset.mark = mark;
    text(m, signs[mark]);
    text($("link-text"), words);
  }
  function connect() {
    clearTimeout(again);
    if (source) source.close();
    opened = performance.now();
    source = new EventSource("events");
    source.addEventListener("past", past);
    source.addEventListener("frame", frame);
    // It tries again itself, but not where it got another answer than events.
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) again = setTimeout(connect, 2000);
    });
  }
  function watch() {
    const silent = performance.now() - arrived;
    if (told && silent < stale) {
      if (lost) text($("said"), "The server is back.");
      lost = 0;
      $("stale").hidden = true;
      if (told.sources.length) link("live", "live · " + clock(told.at));
      return;
    }
    if (document.hidden) return;
    if (told && !lost) {
      lost = 1;
      text($("said"), "Nothing comes from the server: what is shown is old.");
    }
    link(told ? "stale" : "connecting", told ? "stale" : "connecting");
    $("stale").hidden = !told && performance.now() < stale;
    text($("stale"), told ? "Nothing from the server for " + span(Math.floor(silent / 1000) * 1000) + ": this is as of " + when(told.at) + ". Trying again." : "The server does not answer. Trying again.");
    // A connection may be dead without anybody having said so.
    if (silent > 10e3 && performance.now() - opened > 10e3) connect();
  }
  setInterval(watch, 500);
  // A browser has few connections for each server, so a page that nobody sees gives its own back.
  let leave = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leave);
    if (document.hidden) leave = setTimeout(() => { source.close(); source = null; }, 60e3);
    else if (!source) connect();
  });
  connect();
})();
