// dashboard.js: asks /status every two seconds and shows it. Rates are the
// difference to the answer before.

import { spark } from "./spark.js";

const period = 2000; // ms
const timeout = 5000; // ms for one answer
const pointsMax = 90; // of a curve: three minutes
const rowsMax = 200; // of a table; /status has the rest

const $ = (id) => document.getElementById(id);
const curves = { streams: [], events: [], bytes: [] };
let before = null; // {at: ms, status}, of the same process
let answeredAt = 0;

function show(status, at) {
  // A restarted process counts from zero.
  if (before && before.status.started !== status.started) before = null;
  const past = before?.status;
  const elapsed = before ? (at - before.at) / 1000 : 0;
  const rate = (now, then) => (elapsed > 0 && then !== undefined ? Math.max(0, now - then) / elapsed : undefined);

  showHead(status);
  showTiles(status, rate(status.events_sent, past?.events_sent), rate(status.bytes_sent, past?.bytes_sent));
  fill("feeds", status.feeds.map((f) => [
    { text: f.route, mono: true },
    { text: f.topics.join(", "), mono: true },
    f.format,
    num(f.subscribers),
    num(f.records),
    { ...num(f.log_bytes, bytes), title: `from ${f.log_start} to ${f.log_head}` },
    { text: f.position || "not known yet", mono: true, wrap: true },
  ]), "No route is open.");
  const then = new Map(past?.kafka.topics.map((t) => [t.topic, t]));
  fill("topics", status.kafka.topics.map((t) => {
    const worst = t.partitions.reduce((w, p) => ((p.lag ?? 0) > (w?.lag ?? 0) ? p : w), null);
    return [
      { text: t.topic, mono: true },
      t.open ? { text: "open", chip: "good" } : { text: t.error || "not open", chip: "bad" },
      num(rate(t.records, then.get(t.topic)?.records), amount),
      num(t.records),
      num(t.partitions.length),
      num(t.lag),
      { text: worst ? `${worst.partition}: ${amount(worst.lag)}` : "none", num: true },
    ];
  }), "No topic is tailed.");
  fill("loops", status.loops.map((l, i) => [
    num(l.loop),
    num(l.streams),
    num(l.streams_lagging),
    num(rate(l.events_sent, past?.loops[i]?.events_sent), amount),
    num(rate(l.turns, past?.loops[i]?.turns), amount),
    num(l.since_turn_seconds, (s) => (s < 1 ? `${Math.round(s * 1000)} ms` : `${s.toFixed(1)} s`)),
  ]), "No loop runs.");
  fill("counts", [
    ["connections accepted", num(status.connections_accepted)],
    ...labelled("closed", status.connections_closed),
    ...labelled("response", status.http_responses),
    ...labelled("replay from", status.replays),
    ["records skipped, too large", num(status.records_skipped)],
    ["records dropped, not UTF-8", num(status.records_dropped)],
    ["records with bytes replaced", num(status.records_replaced)],
    ["event names refused", num(status.event_names_refused)],
  ]);
  before = { at, status };
}

function showHead(status) {
  $("version").textContent = status.version;
  $("uptime").textContent = `up ${uptime(status.uptime_seconds)}, ${status.go_version}`;
  state(status.ready ? "ready" : "not ready", status.ready ? "open" : "closed");
  notice(status.not_ready.join("\n"));
  $("kafka").textContent = status.kafka.connected ? "Kafka answers" : `Kafka is away${status.kafka.error ? ": " + status.kafka.error : ""}`;
}

function showTiles(status, events, bytesRate) {
  const lag = status.kafka.topics.reduce((n, t) => n + t.lag, 0);
  $("streams").textContent = amount(status.streams);
  $("connections").textContent = `of ${amount(status.connections)} connections`;
  $("events").textContent = events === undefined ? "–" : amount(events);
  $("events-total").textContent = `${amount(status.events_sent)} in all`;
  $("bytes").textContent = bytesRate === undefined ? "–" : bytes(bytesRate);
  $("bytes-total").textContent = `${bytes(status.bytes_sent)} in all`;
  $("lag").textContent = amount(lag);
  $("lagging").textContent = amount(status.streams_lagging);
  split("slow", status.slow_clients_dropped);
  split("resyncs", status.resyncs);
  split("rejected", status.connections_rejected);
  curve("streams", status.streams);
  curve("events", events);
  curve("bytes", bytesRate);
}

/** A total, and under it the labels that are not zero. */
function split(id, counts) {
  const entries = Object.entries(counts);
  $(id).textContent = amount(entries.reduce((n, [, c]) => n + c, 0));
  $(`${id}-split`).textContent = entries.filter(([, c]) => c > 0).map(([label, c]) => `${label} ${amount(c)}`).join(", ");
}

function curve(name, value) {
  if (value === undefined) return;
  const points = curves[name];
  points.push(value);
  if (points.length > pointsMax) points.shift();
  spark($(`${name}-spark`), points.length < 2 ? [value, value] : points);
}

/** A row for each label that is not zero. */
const labelled = (what, counts) => Object.entries(counts).filter(([, n]) => n > 0).map(([label, n]) => [`${what} ${label}`, num(n)]);

/** A cell with a number; undefined is not known yet. */
const num = (n, format = amount) => ({ text: n === undefined ? "–" : format(n), num: true });

/** Puts rows of cells, each a string or {text, num, mono, wrap, chip, title}, into the table body. */
function fill(id, rows, otherwise = "") {
  const shown = rows.slice(0, rowsMax).map((cells) => {
    const tr = document.createElement("tr");
    for (const c of cells) {
      const cell = typeof c === "string" ? { text: c } : c;
      const td = tr.insertCell();
      td.className = ["num", "mono", "wrap"].filter((k) => cell[k]).join(" ");
      if (cell.title) td.title = cell.title;
      const holder = cell.chip ? td.appendChild(document.createElement("span")) : td;
      if (cell.chip) holder.className = `chip ${cell.chip}`;
      holder.textContent = cell.text;
    }
    return tr;
  });
  const rest = rows.length > rowsMax ? `and ${amount(rows.length - rowsMax)} more: see /status` : rows.length ? "" : otherwise;
  if (rest) {
    const td = document.createElement("tr").insertCell();
    td.colSpan = 9;
    td.className = "empty";
    td.textContent = rest;
    shown.push(td.parentElement);
  }
  $(id).replaceChildren(...shown);
}

function state(text, kind) {
  $("state").textContent = text;
  $("state").dataset.state = kind;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = text === "";
}

function amount(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(2)} G`;
  if (n >= 1e7) return `${(n / 1e6).toFixed(1)} M`;
  return n < 10 && n % 1 ? n.toFixed(1) : Math.round(n).toLocaleString("en");
}

function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024) return `${n < 10 && n % 1 ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1024;
  }
  return `${n.toFixed(1)} TiB`;
}

function uptime(s) {
  const d = Math.floor(s / 86400);
  const h = Math.floor(s / 3600) % 24;
  const m = Math.floor(s / 60) % 60;
  if (d) return `${d} d ${h} h`;
  if (h) return `${h} h ${m} min`;
  return m ? `${m} min ${Math.floor(s) % 60} s` : `${Math.floor(s)} s`;
}

async function ask() {
  if (!document.hidden) {
    try {
      const answer = await fetch("status", { signal: AbortSignal.timeout(timeout) });
      if (!answer.ok) throw new Error(`/status answered ${answer.status}`);
      const status = await answer.json();
      answeredAt = Date.now();
      show(status, answeredAt);
    } catch (err) {
      state("no answer", "dropped");
      const since = answeredAt ? ` for ${Math.round((Date.now() - answeredAt) / 1000)} s; the figures are from then` : "";
      notice(`No answer${since} (${err.message}).`);
    }
  }
  setTimeout(ask, period);
}

document.addEventListener("visibilitychange", () => {
  before = null; // a rate over the time nobody looked would mislead
});
ask();
