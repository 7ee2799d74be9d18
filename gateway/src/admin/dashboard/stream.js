// The stream of events, read with fetch: an EventSource can't send the token as a header, and a token has no place in an address.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;

/** Parses server-sent events from pieces of text. */
export class Parser {
  #rest = '';

  /** The events that this piece completes. */
  feed(piece) {
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop();
    const events = [];
    for (const block of blocks) {
      const event = { id: null, kind: 'message', data: '' };
      for (const line of block.split('\n')) {
        if (line.startsWith('id: ')) event.id = line.slice(4);
        else if (line.startsWith('event: ')) event.kind = line.slice(7);
        else if (line.startsWith('data: ')) event.data += line.slice(6);
      }
      if (event.data) events.push(event);
    }
    return events;
  }
}

/** Reads for ever, begins again when it is lost, and tells how it goes: `live`, `lost` (with when it tries again), `locked` (by a token). */
export class Stream {
  #last = null;
  #failures = 0;
  #wake = () => {};
  #abort = new AbortController();

  constructor({ token, onEvent, onStatus, interval }) {
    this.token = token;
    this.onEvent = onEvent;
    this.onStatus = onStatus;
    this.interval = interval;
  }

  async run() {
    for (;;) {
      let status = 0;
      try {
        status = await this.#read();
      } catch {
        // Whatever it was, the stream is lost.
      }
      if (status === 401 || status === 403) {
        this.onStatus('locked', { status });
        await new Promise((resolve) => { this.#wake = resolve; });
        continue;
      }
      const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures) * (0.75 + Math.random() / 2);
      this.#failures += 1;
      this.onStatus('lost', { retryAt: Date.now() + wait });
      await new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  /** Tries at once. */
  retry() {
    this.#failures = 0;
    this.#wake();
  }

  /** Begins anew, with another token perhaps. */
  restart() {
    this.#abort.abort();
    this.retry();
  }

  async #read() {
    const abort = (this.#abort = new AbortController());
    // Each look of the gateway is an event: silence means that nobody is there.
    let watchdog = 0;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), Math.max(4000, this.interval() * 3.5));
    };
    alive();
    try {
      const headers = { accept: 'text/event-stream' };
      const token = this.token();
      if (token) headers.authorization = `Bearer ${token}`;
      if (this.#last) headers['last-event-id'] = this.#last;
      const answer = await fetch('events', { headers, signal: abort.signal, cache: 'no-store' });
      if (!answer.ok) return answer.status;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return 0;
        alive();
        for (const event of parser.feed(value)) {
          this.#last = event.id;
          this.#failures = 0;
          this.onEvent(event.kind, JSON.parse(event.data));
        }
        this.onStatus('live', {});
      }
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }
}
