// One target in full: what it does, why it last opened, what it went through, the policy in force, who acted on it.

import { ACTIONS, actionsFor, read } from './actions.js';
import { icon, setIcon, wordOf } from './states.js';
import { countdown } from './tile.js';
import { byId, count, element, latency, mark, moment, percent, rate, show, span, words, write } from './text.js';

/** How often the detail is asked for while its target changes. */
const PAUSE = 2000;

export class Detail {
  #name = null;
  #asked = 0;
  #drawn = {};

  constructor(store, { onAct, onClose }) {
    this.store = store;
    this.onAct = onAct;
    this.onClose = onClose;
    this.box = byId('detail');
    this.box.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
  }

  get name() {
    return this.#name;
  }

  open(name) {
    this.#name = name;
    this.#asked = 0;
    this.#drawn = {};
    this.#build(name);
    this.box.hidden = false;
    this.update();
    this.heading.focus();
  }

  close() {
    if (this.#name === null) return;
    const name = this.#name;
    this.#name = null;
    this.box.hidden = true;
    this.onClose(name);
  }

  /** Takes the focus, if what had it is no longer there. */
  keepFocus() {
    if (this.#name !== null && document.activeElement === document.body) this.heading.focus();
  }

  #build(name) {
    this.icon = icon();
    this.heading = element('h2', { id: 'detail-name', tabindex: '-1' }, element('bdi', {}, name));
    const close = element('button', { type: 'button', class: 'quiet close', 'aria-label': 'Close the details' }, '✕');
    close.addEventListener('click', () => this.close());
    this.state = element('p', { class: 'detail-state' });
    this.buttons = element('div', { class: 'buttons' });
    this.buttons.addEventListener('click', (event) => {
      const action = event.target.closest('button')?.dataset.action;
      if (action) this.onAct(name, action);
    });
    this.now = element('dl', { class: 'facts' });
    const section = (title) => {
      const body = element('div', { class: 'section-body' });
      this.parts.append(element('section', {}, element('h3', {}, title), body));
      return body;
    };
    this.parts = element('div');
    this.trip = section('Why it last opened');
    this.recent = section('What it went through');
    this.policy = section('Policy in force');
    this.shadows = section('Shadows');
    show(this.shadows.parentElement, false);
    this.shadows.addEventListener('click', (event) => {
      const shadow = event.target.closest('button')?.dataset.shadow;
      if (shadow) this.onAct(name, 'promote', shadow);
    });
    this.calls = section('Whole calls');
    this.changes = section('Changed by hand');
    this.box.replaceChildren(element('div', { class: 'detail-head' }, this.icon, this.heading, close),
      this.state, this.buttons, this.now, this.parts);
  }

  /** Writes what the stream tells, and asks for the rest now and then. */
  update() {
    const target = this.#name === null ? null : this.store.targets.get(this.#name);
    if (this.#name !== null && !target) this.close();
    if (!target) return;
    mark(this.box, 'data-kind', target.kind);
    setIcon(this.icon, target.kind);
    this.#once('buttons', actionsFor(target), (actions) => this.#drawButtons(actions));
    this.#drawNow(target);
    this.tick();
    if (Date.now() - this.#asked >= PAUSE) this.#ask(this.#name);
  }

  tick() {
    const target = this.#name === null ? null : this.store.targets.get(this.#name);
    if (!target) return;
    const now = this.store.now();
    const since = target.since_ms ? ` for ${span(now - target.since_ms)}, by ${words(target.cause)}` : ', no change since it is watched';
    const next = countdown(target, now);
    write(this.state, `${wordOf(target.kind)}${since}${next ? `; ${next}` : ''}`);
  }

  /** Draws a part anew only if what it shows is different. */
  #once(part, value, draw) {
    const text = JSON.stringify(value ?? null);
    if (this.#drawn[part] === text) return;
    this.#drawn[part] = text;
    draw(value);
  }

  #drawButtons(actions) {
    const focused = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...actions.map((action) => {
      const button = element('button', { type: 'button' }, ACTIONS[action].label);
      button.dataset.action = action;
      return button;
    }));
    if (focused) this.buttons.firstChild?.focus();
  }

  #drawNow(target) {
    const window = target.window;
    const facts = {
      Requests: `${rate(target.rate)} /s`,
      Failed: target.failedShare === null ? 'no calls of late' : `${percent(target.failedShare)} of late`,
      Refused: `${rate(target.refusing)} /s`,
      'In flight': `${count(target.in_flight)}${target.limit === null ? ', no limit' : ` of ${count(target.limit)}`}`
        + (target.full_limit !== target.limit ? `, ramping to ${count(target.full_limit)}` : ''),
      Waiting: count(target.waiting),
      Latency: `p50 ${latency(target.latency?.p50_ms)}, p99 ${latency(target.latency?.p99_ms)}`,
      Window: window ? `${window.failures} of ${window.calls} failed${window.slow ? `, ${window.slow} slow` : ''}` : 'none',
      ...(target.stalled ? { Stalled: count(target.stalled) } : {}),
      ...(target.reopens ? { 'Failed probes in a row': count(target.reopens) } : {}),
      'Since the start': Object.entries(target.totals).filter(([, n]) => n > 0).map(([what, n]) => `${count(n)} ${what}`).join(', ') || 'no calls',
      'Refused by reason': Object.entries(target.refusals).filter(([, n]) => n > 0).map(([why, n]) => `${count(n)} ${why}`).join(', ') || 'none',
    };
    this.#once('now', facts, () => this.now.replaceChildren(...pairs(facts)));
  }

  async #ask(name) {
    this.#asked = Date.now();
    try {
      const [full, { changes }] = await Promise.all([read(`targets/${encodeURIComponent(name)}`), read('changes')]);
      if (this.#name !== name) return;
      this.#once('trip', full.trip, (trip) => this.trip.replaceChildren(...this.#told(trip)));
      this.#once('recent', full.recent, (recent) => this.recent.replaceChildren(this.#moves(recent ?? [])));
      this.#once('policy', full.policy, (policy) => this.policy.replaceChildren(facts(policy)));
      this.#once('shadows', (full.shadows ?? []).map(figures), (shadows) => this.#drawShadows(shadows));
      const calls = { ...full.call_policy, ...Object.fromEntries(Object.entries(full.calls ?? {}).filter(([, n]) => n !== 0)) };
      this.#once('calls', calls, () => this.calls.replaceChildren(facts(calls)));
      const own = changes.filter((change) => change.target === name).slice(-8).reverse();
      this.#once('changes', own, () => this.changes.replaceChildren(this.#byHand(own)));
    } catch {
      // The stream tells when the gateway is gone.
    }
  }

  #drawShadows(shadows) {
    const focused = this.shadows.contains(document.activeElement) ? document.activeElement.dataset.shadow : null;
    show(this.shadows.parentElement, shadows.length > 0);
    this.shadows.replaceChildren(...shadows.map(([name, figures]) => {
      const promote = element('button', { type: 'button', 'aria-label': `Promote ${name}` }, ACTIONS.promote.label);
      promote.dataset.shadow = name;
      const head = element('div', { class: 'shadow-head' }, element('h4', {}, element('bdi', {}, name)), promote);
      if (name === focused) queueMicrotask(() => promote.focus());
      return element('div', { class: 'shadow' }, head, element('dl', { class: 'facts' }, ...pairs(figures)));
    }));
  }

  #told(trip) {
    if (!trip) return [element('p', { class: 'none' }, 'It has not opened by a rule.')];
    const { evidence } = trip;
    const met = evidence.met.map((met) => element('li', {}, rule(met)));
    const seen = `Window: ${evidence.failures} of ${evidence.calls} calls failed, ${evidence.slow} slow; ${evidence.streak} failures in a row;`
      + ` policy version ${evidence.policy_version}.`;
    return [element('p', {}, `${moment(Date.parse(trip.wall), this.store.now())}, for ${span(trip.wait_ms ?? 0)} at first:`),
      element('ul', {}, ...met), element('p', { class: 'small' }, seen)];
  }

  #moves(recent) {
    if (recent.length === 0) return element('p', { class: 'none' }, 'Nothing yet.');
    const rows = recent.toReversed().map((moved) => element('tr', {},
      element('td', {}, moment(Date.parse(moved.wall), this.store.now())),
      element('td', {}, `${wordOf(moved.from)} → ${wordOf(moved.to)}`),
      element('td', {}, words(moved.cause))));
    const heads = ['when', 'change', 'cause'].map((text) => element('th', { scope: 'col' }, text));
    return element('table', {}, element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows));
  }

  #byHand(own) {
    if (own.length === 0) return element('p', { class: 'none' }, 'Nothing of late.');
    return element('ul', {}, ...own.map((change) => {
      const who = change.operator ? `${decoded(change.operator)} (${change.peer})` : change.peer;
      const came = change.status === 200 ? '' : `, refused (${change.status})`;
      return element('li', {}, `${moment(Date.parse(change.wall), this.store.now())} ${words(change.action)}${came}, by ${who}`);
    }));
  }
}

/** What a shadow would have done, under its name. */
function figures(shadow) {
  return [shadow.name, {
    'Would be': wordOf(shadow.would_be.state),
    Trips: count(shadow.trips),
    'Would have refused': `${count(shadow.refused)} of ${count(shadow.asked)}`,
    'Failures avoided': count(shadow.failures_avoided),
    'Refused but succeeded': count(shadow.refused_but_succeeded),
    ...(shadow.not_asked ? { 'Not asked': count(shadow.not_asked) } : {}),
  }];
}

function decoded(text) {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

function rule({ rule, count: n, calls, threshold }) {
  const isShare = ['failure_rate', 'slow_rate', 'stalled_share'].includes(rule);
  const limit = isShare ? `${threshold / 100} %` : count(threshold);
  return `${words(rule)}: ${count(n)} of ${count(calls)}${isShare && calls ? ` (${percent(n / calls)})` : ''}, the rule is ${limit}`;
}

function pairs(facts) {
  return Object.entries(facts).map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)));
}

function facts(value) {
  const shown = Object.entries(value ?? {}).map(([name, value]) => [words(name), plain(value)]);
  if (shown.length === 0) return element('p', { class: 'none' }, 'None.');
  return element('dl', { class: 'facts' }, ...pairs(Object.fromEntries(shown)));
}

function plain(value) {
  if (value === null) return 'none';
  if (typeof value !== 'object') return String(value);
  return Object.entries(value).map(([name, value]) => `${words(name)} ${plain(value)}`).join(', ') || 'none';
}
