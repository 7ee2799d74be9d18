// The page: the stream fills the store, each event is drawn once, and the time goes on in between.

import { ACTIONS, AskToken, Confirm, token } from './actions.js';
import { Detail } from './detail.js';
import { Grid } from './grid.js';
import { History } from './history.js';
import { STATES, VERBS, WORDS, icon, setIcon, wordOf } from './states.js';
import { Store } from './store.js';
import { Stream } from './stream.js';
import { byId, count, element, left, mark, moment, rate, show, span, write } from './text.js';

const store = new Store();
const view = { search: '', kinds: new Set(), sort: 'worst' };
const link = { status: 'connecting', since: Date.now(), retryAt: 0 };

const confirm = new Confirm((name, action, body) => say(`${ACTIONS[action].label} of ${name}: ${wordOf(body.state ?? '')}.`),
  () => detail.keepFocus());
const askToken = new AskToken(() => { drawToken(); stream.restart(); });
const grid = new Grid(byId('targets'), store, (name) => open(name));
const past = new History(store, (name) => open(name));
const detail = new Detail(store, {
  onAct: (name, action, shadow) => confirm.ask(name, action, shadow),
  onClose: (name) => { drawAll(); if (!grid.focus(name)) byId('search').focus(); },
});

const stream = new Stream({
  token: token.get,
  interval: () => store.interval,
  onEvent(kind, data) {
    announce(store.take(kind, data));
    later();
  },
  onStatus(status, { retryAt = 0, status: code }) {
    if (status !== link.status) link.since = Date.now();
    Object.assign(link, { status, retryAt });
    if (status === 'locked') {
      askToken.ask(code === 401 ? (token.get() ? 'That token is not the right one.' : 'Looking at this gateway needs its admin token.')
        : 'This gateway only answers to localhost while it has no admin token.');
    }
    drawLink();
  },
});

function open(name) {
  if (!store.targets.has(name)) return;
  detail.open(name);
  grid.draw();
}

// Drawing: at most once a frame, and not at all while nobody sees it.

let isDue = false;
function later() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; drawAll(); });
}

function drawAll() {
  const order = store.select(view);
  grid.arrange(order);
  past.draw();
  detail.update();
  drawFilters();
  drawTotals(order);
}

const filters = new Map(STATES.map((kind) => {
  const shape = icon();
  setIcon(shape, kind);
  const number = element('b', {}, '0');
  const button = element('button', { type: 'button', 'aria-pressed': 'false', 'data-kind': kind }, shape, number, WORDS[kind].toLowerCase());
  button.addEventListener('click', () => {
    if (!view.kinds.delete(kind)) view.kinds.add(kind);
    mark(button, 'aria-pressed', view.kinds.has(kind));
    drawAll();
  });
  byId('filters').append(button);
  return [kind, { button, number }];
}));

function drawFilters() {
  const counts = store.kinds();
  for (const [kind, { button, number }] of filters) {
    write(number, count(counts[kind]));
    mark(button, 'data-none', counts[kind] === 0 ? '' : null);
  }
  const bad = counts.OPEN + counts.HALF_OPEN + counts.FORCED_OPEN;
  const title = bad ? `(${bad}) portcullis` : 'portcullis';
  if (document.title !== title) document.title = title;
}

function drawTotals(order) {
  const totals = store.totals();
  write(byId('total-rate'), `${rate(totals.rate)} /s`);
  write(byId('total-failed'), `${rate(totals.failing)} /s`);
  write(byId('total-refused'), `${rate(totals.refusing)} /s`);
  mark(byId('total-failed'), 'data-bad', totals.failing > 0 ? '' : null);
  mark(byId('total-refused'), 'data-bad', totals.refusing > 0 ? '' : null);
  const { in_flight: inside, max_concurrent: most, status } = store.health ?? {};
  write(byId('total-inside'), `${count(inside ?? 0)} / ${count(most ?? 0)}${status === 'draining' ? ', draining' : ''}`);
  const all = store.targets.size;
  write(byId('shown'), order.length === all ? `${count(all)} targets` : `${count(order.length)} of ${count(all)} targets`);
  show(byId('empty'), order.length === 0);
  write(byId('empty'), all ? 'No target is like that.' : 'The gateway has no targets.');
  write(byId('version'), store.version ? `portcullis ${store.version}` : '');
}

function drawLink() {
  const { status, since, retryAt } = link;
  const pill = byId('link');
  mark(pill, 'data-link', status);
  const age = span(Date.now() - since);
  write(pill, { live: 'Live', connecting: 'Connecting', lost: `Stale, ${age}`, locked: 'Locked' }[status]);
  const isStale = status !== 'live' && store.health !== null;
  document.body.classList.toggle('stale', isStale);
  show(byId('banner'), status === 'lost' || status === 'locked');
  if (status === 'live' || status === 'connecting') return;
  const asOf = store.lastMs ? `What you see is as of ${moment(store.lastMs, store.now())}.` : 'Nothing has been seen yet.';
  const trying = retryAt > Date.now() ? ` Trying again in ${left(retryAt - Date.now())}.` : '';
  write(byId('banner-text'), status === 'locked' ? `The gateway needs its admin token. ${asOf}` : `The stream is lost. ${asOf}${trying}`);
}

function drawToken() {
  write(byId('token-button'), token.get() ? 'Token set' : 'Token');
}

// What happens is said in few words, and not every second.

const QUIET = 3000;
let toSay = [];
let sayTimer = 0;

function announce(transitions) {
  const last = new Map(transitions.filter((moved) => moved.from !== moved.to).map((moved) => [moved.target, moved]));
  if (last.size === 0) return;
  for (const [name, moved] of last) toSay.push(`${name} ${VERBS[moved.to] ?? moved.to}`);
  if (!sayTimer) sayTimer = setTimeout(sayAll, QUIET);
}

function sayAll() {
  sayTimer = 0;
  const some = toSay.slice(0, 3).join(', ');
  say(toSay.length > 3 ? `${some}, and ${toSay.length - 3} more changes.` : `${some}.`);
  toSay = [];
}

function say(text) {
  const log = byId('live');
  log.append(element('p', {}, text));
  while (log.children.length > 5) log.firstChild.remove();
}

byId('search').addEventListener('input', (event) => { view.search = event.target.value; drawAll(); });
byId('sort').addEventListener('change', (event) => { view.sort = event.target.value; drawAll(); });
byId('retry').addEventListener('click', () => (link.status === 'locked' ? askToken.ask('') : stream.retry()));
byId('token-button').addEventListener('click', () => askToken.ask('It is sent with what you do here, and kept until this tab is closed.'));
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches?.('input, select, textarea') || document.querySelector('dialog[open]');
  if (event.key === '/' && !isTyping) {
    event.preventDefault();
    byId('search').focus();
  } else if (event.key === 'Escape' && event.target === byId('search')) {
    byId('search').value = view.search = '';
    drawAll();
  } else if (event.key === 'Escape' && !isTyping) {
    detail.close();
  }
});
// A machine that leaves the network is told so long before its connections are.
addEventListener('offline', () => stream.restart());
addEventListener('online', () => stream.retry());
document.addEventListener('visibilitychange', () => { if (!document.hidden && link.status === 'lost') stream.retry(); });

// A countdown in tenths is worth a look five times a second; less motion is asked for by some.
const calm = matchMedia('(prefers-reduced-motion: reduce)');
(function tick() {
  if (!document.hidden) {
    if (link.status === 'live') {
      grid.tick();
      detail.tick();
    }
    if (link.status === 'lost') drawLink();
  }
  setTimeout(tick, calm.matches ? 1000 : 200);
})();

drawToken();
drawLink();
stream.run();
