// What is known of the gateway: the targets as the stream tells them, their last minute in samples, the transitions.

import { kindOf, STATES, trouble } from './states.js';

/** Samples of a target: one per event, so about a minute. */
export const SAMPLES = 60;
/** How many of them a rate is taken over. */
const RECENT = 8;
const TRANSITIONS = 1000;

const refusedOf = (target) => Object.values(target.refusals).reduce((sum, n) => sum + n, 0);

class Target {
  constructor(name) {
    this.name = name;
    this.asked = new Float32Array(SAMPLES);
    this.failed = new Float32Array(SAMPLES);
    this.refused = new Float32Array(SAMPLES);
    this.rate = 0;
    this.refusing = 0;
    this.failing = 0;
    this.failedShare = null;
    // Samples since its last transition.
    this.fresh = RECENT;
    this.changed = null;
  }

  /** What has happened since the last look; the counters of another process begin anew. */
  sample(at, before) {
    const refused = refusedOf(this);
    const now = { admitted: this.totals.admitted, failure: this.totals.failure, refused };
    const last = before ?? now;
    const since = (field) => Math.max(0, now[field] - last[field]);
    this.refused[at] = since('refused');
    this.asked[at] = since('admitted') + this.refused[at];
    this.failed[at] = since('failure');
    this.counted = now;
    this.fresh = this.changed === this.since_ms ? this.fresh + 1 : 0;
    this.changed = this.since_ms;
  }
}

export class Store {
  constructor() {
    this.targets = new Map();
    this.transitions = [];
    this.health = null;
    this.version = '';
    this.skew = 0;
    this.interval = 1000;
    this.startedMs = 0;
    this.cursor = 0;
    this.seconds = new Float32Array(SAMPLES);
    this.lastMs = null;
  }

  /** The gateway's clock, as far as it is known here. */
  now() {
    return Date.now() - this.skew;
  }

  /** Takes in an event; the transitions that are new in it. */
  take(kind, data) {
    this.skew = Date.now() - data.now_ms;
    this.health = data.health;
    const isWhole = kind === 'state';
    if (isWhole) {
      this.version = data.version;
      this.interval = data.interval_ms;
      this.startedMs = data.started_ms;
      const names = new Set(data.targets.map((target) => target.name));
      for (const name of this.targets.keys()) if (!names.has(name)) this.targets.delete(name);
    }
    for (const fields of data.targets) {
      let target = this.targets.get(fields.name);
      if (!target) this.targets.set(fields.name, (target = new Target(fields.name)));
      Object.assign(target, fields);
    }
    for (const name of data.gone ?? []) this.targets.delete(name);
    this.sample(data.now_ms, isWhole);
    return this.note(data.transitions, isWhole);
  }

  sample(nowMs, isWhole) {
    this.cursor = (this.cursor + 1) % SAMPLES;
    const at = this.cursor;
    this.seconds[at] = isWhole || this.lastMs === null ? 0 : Math.max(0.001, (nowMs - this.lastMs) / 1000);
    this.lastMs = nowMs;
    for (const target of this.targets.values()) {
      target.sample(at, isWhole ? null : target.counted);
      this.judge(target);
    }
  }

  /** Over the last samples, but none from before its state changed: what was refused while it was open says nothing of it now. */
  judge(target) {
    let [asked, failed, refused, seconds] = [0, 0, 0, 0];
    const samples = Math.min(RECENT, Math.max(1, target.fresh));
    for (let back = 0; back < samples; back++) {
      const at = (this.cursor - back + SAMPLES) % SAMPLES;
      asked += target.asked[at];
      failed += target.failed[at];
      refused += target.refused[at];
      seconds += this.seconds[at];
    }
    target.rate = seconds > 0 ? asked / seconds : 0;
    // The very sample in which it changed has something of both.
    if (target.fresh === 0) [failed, refused, asked] = [0, 0, 0];
    const served = asked - refused;
    target.refusing = seconds > 0 ? refused / seconds : 0;
    target.failing = seconds > 0 ? failed / seconds : 0;
    target.failedShare = failed + served > 0 ? Math.min(1, failed / Math.max(served, failed)) : null;
    target.kind = kindOf(target);
    target.trouble = trouble(target);
  }

  /** Each transition once, also where a stream began anew. */
  note(transitions, isWhole) {
    const key = (moved) => `${moved.wall} ${moved.target} ${moved.sequence}`;
    const known = isWhole ? new Set(this.transitions.map(key)) : null;
    const isFirst = isWhole && this.transitions.length === 0;
    const fresh = known ? transitions.filter((moved) => !known.has(key(moved))) : transitions;
    for (const moved of fresh) moved.ms = Date.parse(moved.wall);
    this.transitions.push(...fresh);
    if (this.transitions.length > TRANSITIONS) this.transitions.splice(0, this.transitions.length - TRANSITIONS);
    return isFirst ? [] : fresh;
  }

  /** How many targets there are of each kind. */
  kinds() {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const target of this.targets.values()) counts[target.kind] += 1;
    return counts;
  }

  totals() {
    const all = { rate: 0, failing: 0, refusing: 0 };
    for (const target of this.targets.values()) for (const field of Object.keys(all)) all[field] += target[field];
    return all;
  }

  /** The targets that are asked for, in order. */
  select({ search, kinds, sort }) {
    const wanted = search.trim().toLowerCase();
    const chosen = [];
    for (const target of this.targets.values()) {
      if ((kinds.size === 0 || kinds.has(target.kind)) && (wanted === '' || target.name.toLowerCase().includes(wanted))) chosen.push(target);
    }
    return chosen.sort(ORDERS[sort]);
  }
}

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const rank = (target) => STATES.indexOf(target.kind);

const ORDERS = {
  worst: (a, b) => rank(a) - rank(b) || b.trouble - a.trouble || byName(a, b),
  name: byName,
  rate: (a, b) => Math.round(b.rate) - Math.round(a.rate) || byName(a, b),
  failed: (a, b) => Math.round(b.failing * 10) - Math.round(a.failing * 10) || byName(a, b),
  slow: (a, b) => (b.latency?.p99_ms ?? -1) - (a.latency?.p99_ms ?? -1) || byName(a, b),
};
