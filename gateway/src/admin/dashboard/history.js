// What happened over all targets: lanes of states over time, and each outage in a sentence.

import { VERBS, wordOf } from './states.js';
import { byId, drawing, element, mark, moment, span, words, write } from './text.js';

const LANES = 7;
const EPISODES = 100;
/** Heights tell states apart as well as colours do. */
const HEIGHTS = { OPEN: 14, FORCED_OPEN: 14, HALF_OPEN: 9, DISABLED: 5, CLOSED: 2 };

/** From leaving CLOSED to coming back, oldest first. */
export function episodes(transitions) {
  const open = new Map();
  const all = [];
  for (const moved of transitions) {
    let episode = open.get(moved.target);
    if (moved.to === 'CLOSED') {
      if (episode) {
        episode.end = moved.ms;
        episode.closedBy = moved.cause;
        open.delete(moved.target);
      }
      continue;
    }
    if (!episode) {
      episode = { target: moved.target, begin: moved.ms, first: moved, end: null, reopened: 0, state: moved.to };
      open.set(moved.target, episode);
      all.push(episode);
    } else if (moved.to === 'OPEN') {
      episode.reopened += 1;
    }
    episode.state = moved.to;
  }
  return all;
}

/** The stretches of one target's states between two moments. */
export function stretches(moves, from, to) {
  const all = [];
  let [state, begin] = [moves[0].from, from];
  for (const moved of moves) {
    if (moved.ms > from) all.push({ state, begin: Math.max(begin, from), end: Math.min(moved.ms, to) });
    [state, begin] = [moved.to, Math.max(moved.ms, from)];
  }
  all.push({ state, begin, end: to });
  return all.filter((stretch) => stretch.end > stretch.begin);
}

export class History {
  #items = new Map();
  #drawn = '';

  constructor(store, onOpen) {
    this.store = store;
    this.onOpen = onOpen;
    this.lanes = byId('lanes');
    this.list = byId('episodes');
    this.choice = byId('span');
    this.choice.addEventListener('change', () => this.draw());
    this.list.addEventListener('click', (event) => {
      const name = event.target.closest('button')?.dataset.name;
      if (name !== undefined) onOpen(name);
    });
  }

  draw() {
    const now = this.store.now();
    // Before it began there was nothing to see.
    const from = Math.max(now - Number(this.choice.value) * 1000, Math.min(this.store.startedMs, now - 60000));
    const all = episodes(this.store.transitions);
    const recent = all.filter((episode) => episode.end === null || episode.end >= from).slice(-EPISODES).reverse();
    this.#drawList(recent, now);
    this.#drawLanes(from, now);
  }

  #drawList(recent, now) {
    const kept = new Set();
    const items = recent.map((episode) => {
      const key = `${episode.begin} ${episode.target}`;
      kept.add(key);
      let item = this.#items.get(key);
      if (!item) this.#items.set(key, (item = makeItem(episode)));
      const { node, parts } = item;
      mark(node, 'data-state', episode.end === null ? episode.state : 'CLOSED');
      write(parts.begun, ` ${VERBS[episode.first.to] ?? wordOf(episode.first.to)} ${moment(episode.begin, now)}`);
      const again = episode.reopened ? `, ${episode.reopened} × reopened` : '';
      // What is done by hand is its own cause.
      const why = ['FORCED_OPEN', 'DISABLED'].includes(episode.first.to) ? 'by hand' : words(episode.first.cause);
      write(parts.why, ` ${why}${again}`);
      write(parts.end, episode.end === null
        ? `${wordOf(episode.state).toLowerCase()} for ${span(now - episode.begin)}`
        : `closed ${moment(episode.end, now)}, after ${span(episode.end - episode.begin)}`);
      return node;
    });
    for (const key of this.#items.keys()) if (!kept.has(key)) this.#items.delete(key);
    if (items.length === 0) items.push(element('li', { class: 'none' }, 'Every target stayed closed.'));
    const isSame = items.length === this.list.children.length && items.every((node, n) => this.list.children[n] === node);
    if (!isSame && !(recent.length === 0 && this.list.querySelector('.none'))) this.list.replaceChildren(...items);
  }

  #drawLanes(from, now) {
    const byTarget = Map.groupBy(this.store.transitions, (moved) => moved.target);
    const moved = [...byTarget].filter(([, moves]) => moves.at(-1).ms >= from || moves.at(-1).to !== 'CLOSED');
    const isBad = ([, moves]) => moves.at(-1).to !== 'CLOSED';
    moved.sort((a, b) => isBad(b) - isBad(a) || b[1].at(-1).ms - a[1].at(-1).ms);
    const lanes = moved.slice(0, LANES);
    const width = now - from;
    const shapes = lanes.map(([name, moves]) => [name, stretches(moves, from, now).map(({ state, begin, end }) =>
      [state, (((begin - from) / width) * 1000).toFixed(1), Math.max(2, ((end - begin) / width) * 1000).toFixed(1)])]);
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => moment(from + part * width, now).slice(0, width < 600e3 ? undefined : 5));
    const drawn = JSON.stringify([shapes, ticks, moved.length]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const rows = shapes.map(([name, parts]) => element('div', { class: 'lane' },
      element('span', { class: 'lane-name', title: name }, element('bdi', {}, name)),
      drawing('svg', { viewBox: '0 0 1000 16', preserveAspectRatio: 'none' }, ...parts.map(([state, x, wide]) =>
        drawing('rect', { 'data-state': state, x, width: wide, y: 8 - HEIGHTS[state] / 2, height: HEIGHTS[state] })))));
    const rest = moved.length - lanes.length;
    const legend = element('div', { class: 'lane axis' },
      element('span', { class: 'lane-name' }, rest > 0 ? `and ${rest} more` : ''),
      element('div', { class: 'ticks' }, ...ticks.map((text) => element('span', {}, text))));
    this.lanes.replaceChildren(...(rows.length ? rows : [element('div', { class: 'lane none' }, 'No transitions.')]), legend);
  }
}

function makeItem(episode) {
  const parts = { begun: element('span'), why: element('span', { class: 'why' }), end: element('span', { class: 'end' }) };
  const button = element('button', { type: 'button' }, element('bdi', {}, episode.target));
  button.dataset.name = episode.target;
  return { node: element('li', {}, element('div', {}, button, parts.begun, parts.why), parts.end), parts };
}
