// demo.js: shows one stream, and whether it keeps its word after a drop.
//
// What to show comes from demo.json; ?stream=, ?broker= and ?topic= go first.
// Without either, the stream is /events of this host. Sample records carry
// {"p": partition, "seq": number in it, "ts": ms since 1970, …}.

import { Tailcast } from "./tailcast.js";
import { Tally } from "./tally.js";
import { spark } from "./spark.js";

// Limits. A fast topic must not grow the page.
const rowsMax = 100; // rows in the table
const dataMax = 400; // characters of a record shown
const samplesMax = 500; // latencies kept of one second, a fair sample above it
const unpaintedMax = 10000; // records between two frames whose latency is taken
const sparkSeconds = 60;
const latencySeconds = 5;
const stuckAfter = 4000; // ms of connecting before the page says what may be wrong

const $ = (id) => document.getElementById(id);

class Second {
  records = 0;
  timed = 0; // of them, those with a time
  latencies = []; // ms
  max = 0;
}

const tally = new Tally();
const seconds = new Map(); // epoch second → Second, the last sparkSeconds of them
const begun = Date.now();
let stream; // Tailcast
let config; // {stream, broker, topic}
let total = 0;
let resyncs = 0;
let openedAt = Infinity; // records produced before are history, not latency
let connectingSince = begun;
let fresh = []; // rows not yet in the table, oldest first, ≤ rowsMax
let unpainted = []; // times of records not yet on the screen
let painting = false;
let drop = null; // the last drop: see dropConnection

// --- the stream

function open(lastEventId) {
  stream = new Tailcast(config.stream, {
    lastEventId,
    onEvent: ({ data, id, event }) => (event === "live" ? note(event, "the snapshot is complete", id) : record(data, id)),
    onDelete: (key, id) => {
      const seen = tally.take(id);
      count();
      row({ ...seen, kind: "delete", data: key });
    },
    onSkipped: (info, id) => {
      const seen = tally.take(id, { p: info.partition });
      count();
      row({ ...seen, kind: "skipped", data: `${info.size ?? "?"} bytes, over the limit of an event` });
    },
    onResync: (info, id) => {
      resyncs++;
      tally.resync(id);
      note("resync", describe(info), id);
    },
    onState: (state, delay) => {
      if (state === "open") openedAt = Date.now();
      if (state === "connecting") connectingSince = Date.now();
      showState(state, state === "waiting" ? `next try in ${Math.ceil(delay / 1000)} s` : "");
    },
  });
}

function record(data, id) {
  const r = read(data);
  const seen = tally.take(id, r);
  count();
  if (drop?.reopenedAt && r.ts < drop.reopenedAt && !seen.twice) {
    drop.caughtUp++;
    drop.caughtUpAt = Date.now();
  }
  if (r.ts >= openedAt && unpainted.length < unpaintedMax) unpainted.push(r.ts);
  row({ partition: r.partition ?? seen.partition, offset: r.offset ?? seen.offset, missing: seen.missing, twice: seen.twice, data });
}

/** What a record's value says of itself, bare or in an envelope. */
function read(data) {
  let v = parse(data);
  const known = {};
  if (Number.isInteger(v.partition) && Number.isInteger(v.offset) && "value" in v) {
    known.partition = v.partition;
    known.offset = v.offset;
    known.ts = v.timestamp;
    v = parse(v.value);
  }
  return { ...known, p: v.p ?? known.partition, seq: v.seq, ts: Number(v.ts ?? known.ts ?? NaN) };
}

function parse(text) {
  try {
    const v = JSON.parse(text);
    return v !== null && typeof v === "object" ? v : {};
  } catch {
    return {};
  }
}

function describe({ reason, topics = {} }) {
  const lost = Object.entries(topics).flatMap(([topic, ranges]) =>
    ranges.length ? ranges.map(({ partition, from, to }) => `${topic}/${partition} ${from ?? "?"} to ${to ?? "?"}`) : topic,
  );
  return `${reason ?? "?"}${lost.length ? ": " + lost.join(", ") : ""}`;
}

// --- figures

function second(now) {
  const key = Math.floor(now / 1000);
  let s = seconds.get(key);
  if (!s) {
    seconds.set(key, (s = new Second()));
    for (const old of seconds.keys()) if (old < key - sparkSeconds) seconds.delete(old);
  }
  return s;
}

function count() {
  total++;
  second(Date.now()).records++;
}

function measure(times) {
  const now = Date.now();
  const s = second(now);
  for (const ts of times) {
    const ms = Math.max(0, now - ts);
    s.max = Math.max(s.max, ms);
    s.timed++;
    const i = s.latencies.length < samplesMax ? s.latencies.length : Math.floor(Math.random() * s.timed);
    if (i < samplesMax) s.latencies[i] = ms;
  }
}

function showFigures() {
  const now = Math.floor(Date.now() / 1000);
  const back = (n) => seconds.get(now - n); // n seconds ago; 0 is still running
  const age = Math.min(latencySeconds, Math.max(1, now - Math.floor(begun / 1000)));
  let recent = 0;
  for (let n = 1; n <= age; n++) recent += back(n)?.records ?? 0;
  $("rate").textContent = amount(recent / age);
  $("total").textContent = total.toLocaleString("en");

  const latencies = [];
  let max = 0;
  for (let n = 0; n < latencySeconds; n++) {
    latencies.push(...(back(n)?.latencies ?? []));
    max = Math.max(max, back(n)?.max ?? 0);
  }
  latencies.sort((a, b) => a - b);
  $("p50").textContent = latencies.length ? duration(latencies[latencies.length >> 1]) : "n/a";
  $("max").textContent = latencies.length ? duration(max) : "n/a";

  const past = Array.from({ length: sparkSeconds }, (_, i) => back(sparkSeconds - i));
  spark($("spark"), past.map((s) => s?.records ?? 0));
  spark($("latency-spark"), past.map((s) => s?.max ?? 0));

  $("missing").textContent = tally.missing.toLocaleString("en");
  $("missing").dataset.bad = tally.missing > 0;
  $("twice").textContent = tally.twice.toLocaleString("en");
  $("twice").dataset.bad = tally.twice > 0;
  $("resyncs").textContent = resyncs.toLocaleString("en");
  $("id").textContent = stream.id || "none yet";
  showHint();
  showResume();
}

function showHint() {
  const stuck = stream.state === "connecting" && Date.now() - connectingSince > stuckAfter;
  $("hint").hidden = !stuck;
  if (stuck) {
    $("hint").textContent =
      `No answer from ${new URL(config.stream, document.baseURI).host} yet. Is the gateway up, does --cors-origins allow ${location.origin}, ` +
      "and do other tabs hold six connections to it already?";
  }
}

const amount = (n) => (n < 10 && n % 1 ? n.toFixed(1) : Math.round(n).toLocaleString("en"));
const duration = (ms) => (ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

// --- the table

function note(kind, data, id) {
  row({ kind, data: `${data} → ${id || "?"}` });
}

function row(r) {
  fresh.push({ ...r, at: new Date() });
  if (fresh.length > rowsMax) fresh.shift();
  if (painting) return;
  painting = true;
  if (document.hidden) setTimeout(paint, 1000); // no frames are drawn
  else requestAnimationFrame(paint);
}

function paint() {
  painting = false;
  const body = $("rows");
  body.prepend(...fresh.reverse().map(element));
  while (body.rows.length > rowsMax) body.lastElementChild.remove();
  $("empty").hidden = body.rows.length > 0;
  if (!document.hidden) measure(unpainted);
  fresh = [];
  unpainted = [];
}

function element({ at, partition, offset, kind, missing, twice, data }) {
  const tr = document.createElement("tr");
  const cell = (text, className) => {
    const td = tr.insertCell();
    td.className = className;
    td.textContent = text;
    return td;
  };
  cell(at.toTimeString().slice(0, 8) + "." + String(at.getMilliseconds()).padStart(3, "0"), "time mono");
  cell(partition ?? "", "num mono");
  cell(offset ?? "", "num mono");
  const td = cell("", "data mono");
  const chip = (text, className) => {
    const span = document.createElement("span");
    span.className = `chip ${className}`;
    span.textContent = text;
    td.append(span, " ");
  };
  if (missing) chip(`${missing} missing before`, "bad");
  if (twice) chip("twice", "bad");
  if (kind) chip(kind, kind);
  tr.dataset.kind = kind ?? "record";
  td.append(data.length > dataMax ? data.slice(0, dataMax) + "…" : data);
  return tr;
}

// --- the drop

function dropConnection(outage) {
  const id = stream.id;
  stream.close();
  drop = { at: Date.now(), outage, missing: tally.missing, twice: tally.twice, resyncs, caughtUp: 0, caughtUpAt: 0, reopenedAt: 0 };
  showState("dropped");
  $("drop").disabled = true;
  setTimeout(() => {
    drop.reopenedAt = Date.now();
    openedAt = Infinity;
    $("drop").disabled = false;
    open(id);
    showFigures();
  }, outage * 1000);
  showFigures();
}

function showResume() {
  if (!drop) return;
  const p = $("resume");
  p.hidden = false;
  if (!drop.reopenedAt) {
    const left = Math.max(0, drop.at + drop.outage * 1000 - Date.now());
    p.textContent = `Away. Back in ${Math.ceil(left / 1000)} s.`;
    p.className = "notice";
    return;
  }
  const missing = tally.missing - drop.missing;
  const twice = tally.twice - drop.twice;
  const away = ((drop.reopenedAt - drop.at) / 1000).toFixed(1);
  const caughtUp = drop.caughtUp
    ? `${drop.caughtUp.toLocaleString("en")} records produced meanwhile arrived within ${duration(drop.caughtUpAt - drop.reopenedAt)}`
    : "nothing produced meanwhile has arrived";
  const resynced = resyncs > drop.resyncs ? " The server could not go on from there and said so: resync." : "";
  p.textContent = `Away for ${away} s; ${caughtUp}. Since the return ${missing} missing, ${twice} twice.${resynced}`;
  p.className = `notice ${missing || twice ? "bad" : resynced ? "" : "good"}`;
}

function showState(state, detail = "") {
  $("state").textContent = detail ? `${state}, ${detail}` : state;
  $("state").dataset.state = state;
}

// --- start

async function settings() {
  const query = new URLSearchParams(location.search);
  let served = {};
  try {
    const answer = await fetch("demo.json");
    if (answer.ok) served = await answer.json();
  } catch {
    // Opened from elsewhere: the address says it all.
  }
  return {
    stream: query.get("stream") || served.stream || "/events",
    broker: query.get("broker") || served.broker || "127.0.0.1:9092",
    topic: query.get("topic") || served.topic || "events",
  };
}

async function copy() {
  const text = $("kcat").textContent;
  try {
    await navigator.clipboard.writeText(text);
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy"), 1500);
  } catch {
    getSelection().selectAllChildren($("kcat")); // no clipboard without TLS: one key is left to press
  }
}

document.addEventListener("visibilitychange", () => {
  unpainted = []; // what waited for a hidden tab says nothing of the stream
});

config = await settings();
$("stream").textContent = new URL(config.stream, document.baseURI).href;
$("kcat").textContent = `echo '{"hello":"browser"}' | kcat -P -b ${config.broker} -t ${config.topic}`;
$("copy").addEventListener("click", copy);
$("drop-form").addEventListener("submit", (e) => {
  e.preventDefault();
  dropConnection(Number(new FormData(e.target).get("outage")));
});
open("");
showFigures();
setInterval(showFigures, 250);
