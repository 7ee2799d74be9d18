// The tiles that are in sight, of however many there are. Each is placed by its rank; nodes follow their target and keep the focus.

import { Tile } from './tile.js';
import { mark } from './text.js';

const HEIGHT = 166;
const GAP = 10;
const NARROWEST = 290;
/** Rows beyond the edge that are there already when somebody scrolls. */
const SPARE = 2;

export class Grid {
  #tiles = new Map();
  #order = [];
  #ranks = new Map();
  #columns = 1;
  #current = null;

  constructor(box, store, onOpen) {
    this.box = box;
    this.store = store;
    this.onOpen = onOpen;
    let asked = false;
    const later = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; this.draw(); });
    };
    addEventListener('scroll', later, { passive: true });
    addEventListener('resize', later);
    new ResizeObserver(later).observe(box);
    box.addEventListener('click', (event) => this.#clicked(event));
    box.addEventListener('keydown', (event) => this.#pressed(event));
    box.addEventListener('focusin', (event) => {
      const name = event.target.closest('.tile')?.dataset.name;
      if (name !== undefined) this.#makeCurrent(name);
    });
  }

  /** Shows these targets in this order. */
  arrange(order) {
    this.#order = order;
    this.#ranks = new Map(order.map((target, rank) => [target.name, rank]));
    if (!this.#ranks.has(this.#current)) this.#current = order[0]?.name ?? null;
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth;
    if (width === 0) return;
    this.#columns = Math.max(1, Math.floor((width + GAP) / (NARROWEST + GAP)));
    const rows = Math.ceil(this.#order.length / this.#columns);
    this.box.style.height = `${Math.max(0, rows * (HEIGHT + GAP) - GAP)}px`;
    const top = -this.box.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / (HEIGHT + GAP)) - SPARE) * this.#columns;
    const last = (Math.ceil((top + innerHeight) / (HEIGHT + GAP)) + SPARE) * this.#columns;
    const seen = this.#order.slice(first, Math.max(first, last));
    // Whoever is at a tile stays at it, wherever it goes. One that the tabulator leads to is always there.
    const current = this.#ranks.get(this.#current);
    if (current !== undefined && current < first) seen.unshift(this.#order[current]);
    if (current !== undefined && current >= last) seen.push(this.#order[current]);
    this.#place(seen, (width - GAP * (this.#columns - 1)) / this.#columns);
    this.tick();
  }

  #place(seen, width) {
    const names = new Set(seen.map((target) => target.name));
    for (const [name, tile] of this.#tiles) {
      if (names.has(name)) continue;
      tile.node.remove();
      this.#tiles.delete(name);
    }
    const nodes = seen.map((target) => {
      let tile = this.#tiles.get(target.name);
      if (!tile) this.#tiles.set(target.name, (tile = new Tile(target.name)));
      tile.draw(target, this.store);
      const rank = this.#ranks.get(target.name);
      const [x, y] = [(rank % this.#columns) * (width + GAP), Math.floor(rank / this.#columns) * (HEIGHT + GAP)];
      const style = tile.node.style;
      const [wide, place] = [`${Math.floor(width)}px`, `translate(${Math.round(x)}px, ${y}px)`];
      if (style.width !== wide) style.width = wide;
      if (style.transform !== place) style.transform = place;
      mark(tile.node, 'aria-posinset', rank + 1);
      mark(tile.node, 'aria-setsize', this.#order.length);
      mark(tile.button, 'tabindex', target.name === this.#current ? 0 : -1);
      return tile.node;
    });
    this.#reorder(nodes);
  }

  /** Puts the nodes in order for those who read them in order. A node that moves loses the focus, so the others move around it. */
  #reorder(nodes) {
    const focused = document.activeElement?.closest('.tile');
    let next = null;
    for (const node of nodes.toReversed()) {
      if (node.nextSibling !== next || node.parentNode !== this.box) {
        if (node === focused) while (node.nextSibling !== next) this.box.insertBefore(node.nextSibling, node);
        else this.box.insertBefore(node, next);
      }
      next = node;
    }
  }

  /** Lets the time go on. */
  tick() {
    const now = this.store.now();
    for (const [name, tile] of this.#tiles) {
      const target = this.store.targets.get(name);
      if (target) tile.tick(target, now);
    }
  }

  /** The button of a target's tile, brought into sight. */
  focus(name) {
    const rank = this.#ranks.get(name);
    if (rank === undefined) return false;
    this.#makeCurrent(name);
    this.draw();
    const tile = this.#tiles.get(name);
    tile?.button.focus({ preventScroll: true });
    tile?.node.scrollIntoView({ block: 'nearest' });
    return true;
  }

  #makeCurrent(name) {
    if (name === this.#current) return;
    const before = this.#tiles.get(this.#current);
    if (before) mark(before.button, 'tabindex', -1);
    this.#current = name;
    const tile = this.#tiles.get(name);
    if (tile) mark(tile.button, 'tabindex', 0);
  }

  #clicked(event) {
    const name = event.target.closest('.tile')?.dataset.name;
    if (name !== undefined) this.onOpen(name);
  }

  #pressed(event) {
    const rank = this.#ranks.get(event.target.closest('.tile')?.dataset.name);
    if (rank === undefined) return;
    const page = this.#columns * Math.max(1, Math.floor(innerHeight / (HEIGHT + GAP)) - 1);
    const steps = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns,
      PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity,
    };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const to = Math.min(this.#order.length - 1, Math.max(0, rank + steps[event.key]));
    this.focus(this.#order[to].name);
  }
}
