// One tile: made once for a target, then only what differs is written.

import { icon, setIcon, wordOf } from './states.js';
import { SAMPLES } from './store.js';
import { count, drawing, element, latency, left, mark, moment, percent, rate, show, span, words, write } from './text.js';

const HEIGHT = 36;

/** A line per second, oldest left: `top` is the highest value. */
function area(values, cursor, top) {
  const step = 100 / (SAMPLES - 1);
  let path = `M0 ${HEIGHT}`;
  for (let n = 0; n < SAMPLES; n++) {
    const value = values[(cursor + 1 + n) % SAMPLES];
    path += `L${(n * step).toFixed(1)} ${(HEIGHT - (value / top) * (HEIGHT - 2)).toFixed(1)}`;
  }
  return `${path}L100 ${HEIGHT}Z`;
}

export class Tile {
  constructor(name) {
    const part = (tag, className) => element(tag, { class: className });
    this.icon = icon();
    this.state = part('span', 'state-word');
    this.since = part('span', 'since');
    this.next = part('span', 'next');
    this.button = element('button', { type: 'button', class: 'name', tabindex: '-1', title: name }, element('bdi', {}, name));
    this.asked = drawing('path', { class: 'asked' });
    this.refused = drawing('path', { class: 'refused' });
    this.failed = drawing('path', { class: 'failed' });
    this.spark = drawing('svg', { class: 'spark', viewBox: `0 0 100 ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      this.asked, this.refused, this.failed);
    this.rate = part('b', 'rate');
    this.share = part('span', 'share');
    this.bar = drawing('rect', { height: '6', width: '0' });
    this.barBox = drawing('svg', { class: 'bar', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      drawing('rect', { class: 'bar-all', width: '100', height: '6' }), this.bar);
    this.inside = part('span', 'inside');
    this.quick = part('span', 'quick');
    this.refusals = part('span', 'refusals');
    this.last = part('span', 'last');
    this.node = element('div', { class: 'tile', role: 'listitem' },
      element('div', { class: 'row head' }, this.icon, this.button),
      element('div', { class: 'row line' }, this.state, this.since, this.next),
      element('div', { class: 'row graph' }, this.spark, element('span', { class: 'numbers' }, this.rate, this.share)),
      element('div', { class: 'row load' }, this.barBox, this.inside),
      element('div', { class: 'row small' }, this.quick, this.last),
      element('div', { class: 'row small' }, this.refusals));
    this.node.dataset.name = name;
  }

  /** Writes what the stream tells. */
  draw(target, store) {
    mark(this.node, 'data-kind', target.kind);
    mark(this.node, 'data-gone', target.configured ? null : '');
    setIcon(this.icon, target.kind);
    write(this.state, target.drill_until_ms ? 'Drill' : wordOf(target.kind) + (target.configured ? '' : ', no longer configured'));
    mark(this.button, 'aria-label', `${target.name}, ${wordOf(target.kind)}`);
    this.graph(target, store);
    write(this.rate, `${rate(target.rate)} /s`);
    const failed = target.failedShare === null ? 'no calls' : `${percent(target.failedShare)} failed`;
    write(this.share, target.refusing > 0 ? `${rate(target.refusing)} /s refused` : failed);
    mark(this.share, 'data-bad', target.refusing > 0 || target.failedShare >= 0.05 ? '' : null);
    const full = target.limit ? Math.min(1, target.in_flight / target.limit) : 0;
    mark(this.bar, 'width', (full * 100).toFixed(0));
    mark(this.barBox, 'data-none', target.limit === null ? '' : null);
    mark(this.barBox, 'data-full', full >= 0.9 ? '' : null);
    const of = target.limit === null ? '' : ` / ${count(target.limit)}`;
    write(this.inside, `${count(target.in_flight)}${of} in flight${target.waiting ? `, ${target.waiting} wait` : ''}`);
    write(this.quick, `p50 ${latency(target.latency?.p50_ms)}, p99 ${latency(target.latency?.p99_ms)}`);
    const reasons = Object.entries(target.refusals).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
    const refused = reasons.length ? `refused: ${reasons.map(([reason, n]) => `${count(n)} ${reason}`).join(', ')}` : null;
    const cause = target.since_ms ? `by ${words(target.cause)}` : null;
    write(this.refusals, [cause, refused].filter(Boolean).join('; '));
    write(this.last, target.since_ms ? `since ${moment(target.since_ms, store.now())}` : '');
  }

  graph(target, store) {
    const top = Math.max(1, ...target.asked);
    mark(this.asked, 'd', area(target.asked, store.cursor, top));
    mark(this.refused, 'd', area(target.refused, store.cursor, top));
    mark(this.failed, 'd', area(target.failed, store.cursor, top));
  }

  /** Writes what only time changes. */
  tick(target, now) {
    write(this.since, target.since_ms ? `for ${span(now - target.since_ms)}` : '');
    const next = countdown(target, now);
    write(this.next, next ?? '');
    show(this.next, next !== null);
  }
}

/** What is waited for, and how long still. */
export function countdown(target, now) {
  if (target.drill_until_ms) return `drill ends in ${left(target.drill_until_ms - now)}`;
  if (target.reopen_at_ms && target.reopen_at_ms > now) return `probe in ${left(target.reopen_at_ms - now)}`;
  if (target.reopen_at_ms) return 'next call probes';
  if (target.state === 'HALF_OPEN') return `${target.probes_in_flight} probing, ${target.probe_successes} succeeded`;
  return null;
}
