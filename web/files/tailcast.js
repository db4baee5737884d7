// tailcast.js: a small client for tailcast streams. Copy it beside your page.
//
//   import { Tailcast } from "./tailcast.js";
//
//   const stream = new Tailcast("https://example.com/events", {
//     onEvent:   ({ data, id, event }) => show(JSON.parse(data)),
//     onResync:  (info, id) => reload(info), // some records can't be had: info.reason, info.topics
//     onDelete:  (key, id) => remove(key),   // a tombstone
//     onSkipped: (info, id) => note(info),   // a record too large to send
//     onState:   (state, delay) => badge(state),
//   });
//   stream.close();
//
// EventSource by itself reconnects after a network error and resumes, but it
// gives up for good on any answer that is not a 200 event stream, such as a
// proxy's 502 during a deploy. This client opens a new one then, after a
// growing and random delay, and passes on the last id it saw, so that the
// stream goes on where it was.
//
// Where streams need a token, getToken returns it (or a promise of it): for each
// stream that is opened, and when the server asks for the next one, so that a
// stream outlives its token. Return one that has not expired.
//
// Each stream is a connection, and over HTTP/1.1 a browser opens six to one
// host for all tabs together: serve several topics in one stream. A page that
// was left gives its connection back; EventSource by itself keeps it while the
// browser keeps the page for the back button.

const firstDelay = 1000; // ms before the first new attempt, doubled each time
const longestDelay = 30000; // ms

export class Tailcast {
  #url;
  #options;
  #id;
  #state = "closed";
  #source = null;
  #timer = 0;
  #attempts = 0; // fatal ends since a stream was last open
  #opening = null; // the latest #open; an older one that waits for its token is void

  /**
   * Opens a stream.
   * @param {string|URL} url of the stream; relative to the page.
   * @param {object} [options]
   * @param {string} [options.lastEventId] go on after this id; without one the route's start policy applies.
   * @param {string} [options.storageKey] keep the id in sessionStorage under this key, so that a reloaded page goes on.
   * @param {string[]} [options.events] further event names of the route, given to onEvent.
   * @param {boolean} [options.withCredentials] send cookies to another origin.
   * @param {function} [options.getToken] returns the token (JWT) to open or prolong the stream with.
   * @param {function} [options.onEvent] and onResync, onDelete, onSkipped, onState: as above; delay is in ms, for "waiting".
   */
  constructor(url, options = {}) {
    this.#url = new URL(url, document.baseURI);
    this.#options = options;
    this.#id = options.lastEventId || this.#store((key) => sessionStorage.getItem(key)) || "";
    addEventListener("pagehide", this.#leave);
    addEventListener("pageshow", this.#comeBack);
    this.#open();
  }

  /**
   * The id of the last event, "" until there was one: EventSource does not show
   * the ids that come without an event. A server that refuses before the first
   * event is therefore asked anew from the start policy.
   */
  get id() {
    return this.#id;
  }

  /** "connecting", "open", "waiting" (the server refused, a new attempt follows) or "closed" (by close). */
  get state() {
    return this.#state;
  }

  /** Ends the stream for good. No callback runs afterwards, save onState("closed"). */
  close() {
    if (this.#state === "closed") return;
    removeEventListener("pagehide", this.#leave);
    removeEventListener("pageshow", this.#comeBack);
    this.#leave();
    this.#enter("closed");
  }

  #leave = () => {
    clearTimeout(this.#timer);
    this.#opening = null;
    this.#source?.close();
  };

  #comeBack = (e) => {
    if (e.persisted) this.#open(); // else the page has only just loaded
  };

  async #open() {
    const opening = (this.#opening = {});
    const url = new URL(this.#url);
    this.#enter("connecting");
    if (this.#options.getToken) {
      const token = await this.#token();
      if (opening !== this.#opening) return;
      if (!token) return this.#reopenLater();
      url.searchParams.set("access_token", token);
    }
    if (this.#id) url.searchParams.set("lastEventId", this.#id);
    const source = new EventSource(url, { withCredentials: this.#options.withCredentials ?? false });
    this.#source = source;
    source.onopen = () => {
      this.#attempts = 0;
      this.#enter("open");
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.#reopenLater();
      else this.#enter("connecting"); // the browser reconnects by itself
    };
    const on = (name, deliver) =>
      source.addEventListener(name, (e) => {
        this.#keep(e.lastEventId);
        deliver(e);
      });
    const { onEvent, onResync, onDelete, onSkipped, events = [] } = this.#options;
    for (const name of new Set(["message", "live", ...events])) {
      on(name, (e) => onEvent?.({ data: e.data, id: e.lastEventId, event: e.type }));
    }
    on("resync", (e) => onResync?.(object(e.data), e.lastEventId));
    on("delete", (e) => onDelete?.(e.data, e.lastEventId));
    on("skipped", (e) => onSkipped?.(object(e.data), e.lastEventId));
    source.addEventListener("challenge", (e) => this.#renew(source, e));
  }

  /** The page's token, or undefined if it has none now. */
  async #token() {
    try {
      return await this.#options.getToken();
    } catch {
      return undefined;
    }
  }

  /** Answers a challenge. If that fails the stream ends with its token, and a new one is opened. */
  async #renew(source, e) {
    if (e.lastEventId) this.#keep(e.lastEventId);
    const { method, headers } = object(e.data);
    const token = this.#options.getToken && (await this.#token());
    if (!token) return;
    const credentials = this.#options.withCredentials ? "include" : "same-origin";
    const answer = await fetch(this.#url, { method, headers: { ...headers, authorization: `Bearer ${token}` }, credentials }).catch(() => null);
    if (answer?.status !== 409 || source !== this.#source || !this.#opening) return;
    source.close(); // the stream is on another node, which only a new one reaches
    this.#open();
  }

  #reopenLater() {
    const delay = Math.min(longestDelay, firstDelay * 2 ** this.#attempts++) * (0.5 + Math.random());
    this.#timer = setTimeout(() => this.#open(), delay);
    this.#enter("waiting", delay);
  }

  #enter(state, delay) {
    if (state === this.#state && state !== "waiting") return;
    this.#state = state;
    this.#options.onState?.(state, delay);
  }

  #keep(id) {
    this.#id = id;
    this.#store((key) => sessionStorage.setItem(key, id));
  }

  #store(access) {
    try {
      return this.#options.storageKey && access(this.#options.storageKey);
    } catch {
      // Full or forbidden: the id in memory is as good until the page goes.
    }
  }
}

/** The JSON object in text, or an empty one: these events' data is the server's own. */
function object(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
