// Values as people read them, and the few ways in which the page is written: always as text, never as markup.

const whole = new Intl.NumberFormat('en');

export const count = (n) => whole.format(n);

export function rate(perSecond) {
  if (perSecond === 0) return '0';
  if (perSecond < 10) return perSecond.toFixed(1);
  return whole.format(Math.round(perSecond));
}

export function percent(part) {
  if (part === null) return '–';
  if (part > 0 && part < 0.01) return '<1 %';
  if (part < 1 && part > 0.99) return '>99 %';
  return `${Math.round(part * 100)} %`;
}

export function latency(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/** The two largest units of a span. */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** What is left, in tenths at the end. */
export function left(ms) {
  return ms < 10000 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : span(ms + 999);
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** The time of day in the reader's zone, with the day if it is another one. */
export function moment(ms, now) {
  return now - ms < 12 * 3600e3 ? clock.format(ms) : day.format(ms);
}

export const words = (name) => name.replaceAll('_', ' ');

/** Writes only what has changed: an untouched node costs no layout and disturbs no screen reader. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function drawing(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);
