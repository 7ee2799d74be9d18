// The states: their words, their shapes (never colour alone), and how bad each is.

import { drawing, mark } from './text.js';

const SHAPES = {
  OPEN: 'M5 1h6l4 4v6l-4 4H5l-4-4V5zM5.2 5.2l5.6 5.6m0-5.6-5.6 5.6',
  HALF_OPEN: 'M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1M8 1v14A7 7 0 0 0 8 1',
  FORCED_OPEN: 'M3 7h10v8H3zM5 7V5a3 3 0 0 1 6 0v2',
  DISABLED: 'M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1M4.5 8h7',
  STRUGGLING: 'M8 1.5 15 14.5H1zM8 6v4m0 1.8v.7',
  CLOSED: 'M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1M4.8 8.2l2.3 2.3 4.2-4.6',
};

/** In the order of the filters, worst first. STRUGGLING is a CLOSED target with trouble: it is served, but not well. */
export const STATES = Object.keys(SHAPES);

export const WORDS = {
  OPEN: 'Open', HALF_OPEN: 'Half-open', FORCED_OPEN: 'Forced open', DISABLED: 'Disabled', STRUGGLING: 'Struggling', CLOSED: 'Closed',
};

export const wordOf = (state) => WORDS[state] ?? state;

/** What the transition to a state is called in a sentence. */
export const VERBS = { OPEN: 'opened', HALF_OPEN: 'is probed', FORCED_OPEN: 'was forced open', DISABLED: 'was disabled', CLOSED: 'closed' };

export function icon() {
  return drawing('svg', { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, drawing('path'));
}

export function setIcon(svg, state) {
  mark(svg.firstChild, 'd', SHAPES[state] ?? SHAPES.CLOSED);
}

/** 0 is fine; more is worse. Coarse on purpose, so that tiles don't dance. */
export function trouble(target) {
  const failed = target.failedShare ?? 0;
  const full = target.limit ? target.in_flight / target.limit : 0;
  const failing = failed >= 0.25 ? 3 : failed >= 0.05 ? 2 : failed > 0 ? 1 : 0;
  return failing * 2 + (full >= 0.9 || target.waiting > 0 ? 2 : 0) + (target.refusing > 0 ? 2 : 0) + (target.stalled > 0 ? 2 : 0);
}

/** The kind under which a target is shown: its state, or that it struggles. */
export function kindOf(target) {
  return target.state === 'CLOSED' && trouble(target) >= 2 ? 'STRUGGLING' : target.state;
}
