// Makes the pictures of the README again: a real outage, seen twice. Takes a minute and a half.

import { fileURLToPath } from 'node:url';
import { Gateway, browser, open, targets, until, upstream } from './stage.mjs';

const folder = process.argv[2] ?? fileURLToPath(new URL('../screenshots/', import.meta.url));
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const HEALTHY = ['accounts', 'cards', 'documents', 'fraud-check', 'identity', 'mail', 'quotes', 'search', 'statements'];
const [healthy, core, rates, claims] = await Promise.all([upstream(), upstream(), upstream(), upstream()]);
const config = [
  [HEALTHY, healthy, 'max_in_flight = 20'],
  [['core-banking'], core, 'max_in_flight = 20\nopen_wait = "12s"'],
  [['rates'], rates, 'max_in_flight = 20\nwindow = { time = "4s", buckets = 4 }\nopen_wait = "4s"'],
  [['claims'], claims, 'max_in_flight = 6\nfailure_rate = 0.9'],
].map(([names, { url }, lines], n) => targets(names, url, `timeout = "800ms"\n${lines}`).replaceAll('path = "/', `path = "/${n}`));
const gateway = await Gateway.start(config.join('\n'));

const random = (from, to) => () => from + Math.random() * Math.random() * (to - from);
Object.assign(healthy, { delay: random(4, 90) });
Object.assign(core, { delay: random(8, 120) });
Object.assign(rates, { delay: random(3, 40) });
Object.assign(claims, { delay: random(120, 700) });
const stops = HEALTHY.map((_, n) => gateway.load(`/0${n}/`, 3 + ((n * 7) % 11)));
stops.push(gateway.load('/10/', 18), gateway.load('/20/', 14), gateway.load('/30/', 10));

const chrome = await browser();
const light = await open(chrome, gateway.admin, { colorScheme: 'light', viewport: { width: 1280, height: 800 } });
const dark = await open(chrome, gateway.admin, { colorScheme: 'dark', viewport: { width: 1120, height: 700 } });
for (const page of [light, dark]) await page.locator('#span').selectOption('300');

await pause(12);
rates.status = 500; // an outage that is over in the picture
await pause(11);
rates.status = 200;
await pause(14);
claims.status = () => (Math.random() < 0.2 ? 503 : 200); // it limps, but is served
await fetch(`${gateway.admin}/targets/search/disable`, { method: 'POST', headers: { 'x-operator': 'ann' } });
await pause(10);
rates.status = 500;
await pause(9);
rates.status = 200;
await pause(3);
core.status = 500; // and one that goes on
await pause(8);
await until('it is open', async () => (await gateway.state('core-banking')) === 'OPEN');
await fetch(`${gateway.admin}/targets/fraud-check/drill?seconds=60`, { method: 'POST', headers: { 'x-operator': 'ann' } });
await pause(4);
await light.screenshot({ path: `${folder}/outage.png` });
await dark.locator('.tile', { hasText: 'core-banking' }).first().click();
await until('the policy', async () => /failure rate/.test(await dark.locator('#detail').textContent()));
await pause(1);
await dark.screenshot({ path: `${folder}/detail.png` });

stops.forEach((stop) => stop());
await chrome.close();
await gateway.stop();
process.exit(0);
