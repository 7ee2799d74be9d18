// The dashboard through a real outage: what an operator sees, and what they do about it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Gateway, TOKEN, browser, open, targets, until, upstream } from './stage.mjs';

const POLICY = 'window = "none"\nconsecutive_failures = 3\nopen_wait = "30s"\njitter = 0.0\nmax_in_flight = 20';
// A test that waits for ever is a failure, too.
const LIMIT = { timeout: 60000 };
const LOST = /Failed to load resource: net::ERR_/;
const REFUSED = /the server responded with a status of 401/;

let chrome;
before(async () => { chrome = await browser(); });
after(() => chrome.close());

/** A gateway with its upstream, and a page on it, for as long as the test takes. */
async function stage(t, names, { policy = POLICY, top = '', page = {}, allowed = null } = {}) {
  const core = await upstream();
  const gateway = await Gateway.start(targets(names, core.url, policy), top);
  const view = await open(chrome, gateway.admin, page, allowed);
  t.after(async () => {
    await view.context().close();
    await gateway.stop();
    core.stop();
    assert.deepEqual(view.faults, []);
  });
  return { core, gateway, page: view };
}

const tile = (page, name) => page.locator('.tile', { has: page.getByText(name, { exact: true }) });
const kind = (page, name) => tile(page, name).getAttribute('data-kind');
const isKind = (page, name, wanted) => until(`${name} is ${wanted}`, async () => (await kind(page, name)) === wanted);
const names = (page) => page.locator('.tile .name').allTextContents();
const isLive = (page) => until('live', async () => (await page.locator('#link').textContent()) === 'Live');

async function fail(core, gateway, path, times) {
  core.status = 500;
  for (let n = 0; n < times; n++) await gateway.get(path);
}

test('an outage is seen as it happens, worst first, and its end too', LIMIT, async (t) => {
  const { core, gateway, page } = await stage(t, ['audit', 'core-banking', 'rates'], { policy: POLICY.replace('30s', '3s') });
  await isKind(page, 'core-banking', 'CLOSED');
  assert.deepEqual(await names(page), ['audit', 'core-banking', 'rates']);
  await fail(core, gateway, '/1/', 3);
  await isKind(page, 'core-banking', 'OPEN');
  assert.deepEqual(await names(page), ['core-banking', 'audit', 'rates']);
  assert.match(await tile(page, 'core-banking').textContent(), /Open.*probe in \d\.\d s/);
  // The countdown runs down to the probe.
  const left = async () => Number((await tile(page, 'core-banking').locator('.next').textContent()).match(/[\d.]+/)?.[0] ?? 0);
  const early = await left();
  await until('less is left', async () => (await left()) < early);
  await until('the wait is over', async () => /next call probes/.test(await tile(page, 'core-banking').textContent()));
  core.status = 200;
  for (let n = 0; n < 3; n++) await gateway.get('/1/');
  await isKind(page, 'core-banking', 'CLOSED');
  assert.match(await page.locator('#episodes').textContent(), /core-banking opened \d\d:\d\d:\d\d consecutive failures.*closed \d\d:\d\d:\d\d, after/);
  assert.ok((await page.locator('.lane rect[data-state="OPEN"]').count()) >= 1);
  await until('it is said', async () => /core-banking (opened|closed)/.test(await page.locator('#live').textContent()));
});

test('numbers are those of the engine', LIMIT, async (t) => {
  const { core, gateway, page } = await stage(t, ['core-banking'], { policy: POLICY.replace('= 20', '= 2') });
  core.delay = 60000;
  // Refused by the limit, since two others never end.
  const calls = [gateway.get('/0/'), gateway.get('/0/')].map((call) => call.catch(() => {}));
  await until('two inside', async () => core.calls === 2);
  await gateway.get('/0/');
  await until('its load is seen', async () => /2 \/ 2 in flight/.test(await tile(page, 'core-banking').textContent()));
  await until('its refusals are seen', async () => /refused: 1 saturated/.test(await tile(page, 'core-banking').textContent()));
  await Promise.all(calls);
  await until('its latency is seen', async () => /p99 \d/.test(await tile(page, 'core-banking').textContent()));
});

test('the detail tells why it opened and by which policy', LIMIT, async (t) => {
  const { core, gateway, page } = await stage(t, ['core-banking', 'rates']);
  await fail(core, gateway, '/0/', 3);
  await isKind(page, 'core-banking', 'OPEN');
  await tile(page, 'core-banking').click();
  const detail = page.locator('#detail');
  await until('the evidence', async () => /consecutive failures: 3 of 3, the rule is 3/.test(await detail.textContent()));
  const text = await detail.textContent();
  assert.match(text, /Policy in force.*consecutive failures3/);
  assert.match(text, /What it went through.*Closed → Open/);
  assert.match(text, /30s/);
});

test('forcing is asked for, done, told, and undone', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, ['core-banking']);
  await tile(page, 'core-banking').click();
  const act = async (label, confirm) => {
    await page.locator('#detail').getByRole('button', { name: label, exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: confirm, exact: true }).click();
  };
  await act('Force open', 'Cancel');
  assert.equal(await gateway.state('core-banking'), 'CLOSED');
  await page.locator('#detail').getByRole('button', { name: 'Force open', exact: true }).click();
  await page.getByLabel('Your name, for the log').fill('Ann <b>');
  await page.getByRole('dialog').getByRole('button', { name: 'Force open', exact: true }).click();
  await until('forced', async () => (await gateway.state('core-banking')) === 'FORCED_OPEN');
  await isKind(page, 'core-banking', 'FORCED_OPEN');
  await until('who did it', async () => /force-open, by Ann <b> \(127\.0\.0\.1\)/.test(await page.locator('#detail').textContent()));
  assert.equal(await gateway.get('/0/'), 503);
  await act('Disable', 'Disable');
  await isKind(page, 'core-banking', 'DISABLED');
  await act('Release', 'Release');
  await isKind(page, 'core-banking', 'CLOSED');
  await page.locator('#detail').getByRole('button', { name: 'Drill', exact: true }).click();
  await page.getByLabel('Seconds').fill('90');
  await page.getByRole('dialog').getByRole('button', { name: 'Drill', exact: true }).click();
  await until('a drill', async () => /drill ends in 1 min/.test(await tile(page, 'core-banking').textContent()));
  await act('End drill', 'End drill');
  await isKind(page, 'core-banking', 'CLOSED');
});

test('a shadow is shown with what it would have done, and promoted once that is confirmed', LIMIT, async (t) => {
  const name = 'strict <b>&?';
  const policy = `window = "none"\nconsecutive_failures = 50\n[target."core-banking".shadow.${JSON.stringify(name)}]\nconsecutive_failures = 3\nopen_wait = "30s"`;
  const { core, gateway, page } = await stage(t, ['core-banking'], { policy });
  const section = page.locator('#detail section', { has: page.getByRole('heading', { name: 'Shadows' }) });
  await fail(core, gateway, '/0/', 5);
  core.status = 200;
  await gateway.get('/0/');
  await tile(page, 'core-banking').click();
  const told = /strict <b>&\?PromoteWould beOpenTrips1Would have refused3 of 6Failures avoided2Refused but succeeded1$/;
  await until('its figures', async () => told.test(await section.textContent()));
  assert.equal(await kind(page, 'core-banking'), 'CLOSED');
  const ask = () => page.getByRole('button', { name: `Promote ${name}`, exact: true }).click();
  const dialog = page.getByRole('dialog');
  await ask();
  assert.match(await dialog.textContent(), /Promote: strict <b>&\?\?.*in force for core-banking until the configuration is read again/s);
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
  assert.equal(await section.isVisible(), true);
  await ask();
  await dialog.getByRole('button', { name: 'Promote', exact: true }).click();
  await until('it is in force', async () => /Policy in force.*consecutive failures3/.test(await page.locator('#detail').textContent()));
  await until('it is no shadow any more', async () => !(await section.isVisible()));
  await until('who did it', async () => /promote, by 127\.0\.0\.1/.test(await page.locator('#detail').textContent()));
  await fail(core, gateway, '/0/', 3);
  await isKind(page, 'core-banking', 'OPEN');
});

test('a change needs the token where there is one', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, ['core-banking'], { top: `admin_token = "${TOKEN}"\n`, allowed: REFUSED });
  await tile(page, 'core-banking').click();
  await page.locator('#detail').getByRole('button', { name: 'Force open', exact: true }).click();
  const dialog = page.getByRole('dialog');
  const yes = dialog.getByRole('button', { name: 'Force open', exact: true });
  await yes.click();
  await until('it is asked for', async () => /needs the admin token/.test(await dialog.textContent()));
  await page.locator('#confirm-token').fill('wrong-horse-battery');
  await yes.click();
  await until('it is wrong', async () => /not the right one/.test(await dialog.textContent()));
  assert.equal(await gateway.state('core-banking'), 'CLOSED');
  await page.locator('#confirm-token').fill(TOKEN);
  await yes.click();
  await isKind(page, 'core-banking', 'FORCED_OPEN');
  assert.ok(!page.url().includes(TOKEN) && !(await page.content()).includes(TOKEN));
  const kept = await page.evaluate(() => [Object.values(localStorage).length, document.cookie]);
  assert.deepEqual(kept, [0, '']);
});

test('by another name even looking needs the token', LIMIT, async (t) => {
  const core = await upstream();
  const gateway = await Gateway.start(targets(['core-banking'], core.url), `admin_token = "${TOKEN}"\n`);
  const own = await browser(['--host-resolver-rules=MAP gate.example 127.0.0.1']);
  const page = await open(own, gateway.admin.replace('127.0.0.1', 'gate.example'), {}, REFUSED);
  t.after(async () => {
    await own.close();
    await gateway.stop();
    core.stop();
    assert.deepEqual(page.faults, []);
  });
  await until('it is asked for', async () => /needs its admin token/.test(await page.locator('#ask-token').textContent()));
  assert.equal(await page.locator('.tile').count(), 0);
  await page.locator('#ask-token-value').fill(TOKEN);
  await page.keyboard.press('Enter');
  await isKind(page, 'core-banking', 'CLOSED');
  // It lasts as long as the tab.
  await page.reload();
  await isKind(page, 'core-banking', 'CLOSED');
});

test('a lost gateway is marked stale, and found again', LIMIT, async (t) => {
  const { core, gateway, page } = await stage(t, ['core-banking', 'rates'], { allowed: LOST });
  await fail(core, gateway, '/0/', 3);
  await isKind(page, 'core-banking', 'OPEN');
  await gateway.kill();
  await until('stale', async () => /^Stale/.test(await page.locator('#link').textContent()));
  assert.match(await page.locator('#banner').textContent(), /The stream is lost\. What you see is as of \d\d:\d\d:\d\d/);
  assert.match(await page.locator('main').evaluate((main) => getComputedStyle(main).filter), /grayscale\(1\)/);
  assert.equal(await tile(page, 'core-banking').locator('.next').isVisible(), false);
  await gateway.again();
  await page.locator('#retry').click().catch(() => {});
  await isLive(page);
  // Another process, in which nothing has happened yet.
  await isKind(page, 'core-banking', 'CLOSED');
  assert.equal(await page.locator('#banner').isVisible(), false);
  assert.equal(await page.locator('main').evaluate((main) => getComputedStyle(main).filter), 'none');
});

test('what was missed is made up for without beginning anew', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, ['core-banking'], { allowed: LOST });
  await isLive(page);
  const asked = [];
  page.on('request', (request) => { if (request.url().endsWith('/events')) asked.push(request.headers()['last-event-id']); });
  await page.context().setOffline(true);
  // An open stream isn't cut by it, so the tab is told to begin again.
  await page.evaluate(() => dispatchEvent(new Event('offline')));
  await until('stale', async () => /^Stale/.test(await page.locator('#link').textContent()));
  await fetch(`${gateway.admin}/targets/core-banking/force-open`, { method: 'POST' });
  await page.context().setOffline(false);
  await isKind(page, 'core-banking', 'FORCED_OPEN');
  assert.match(asked.at(-1), /^\d+-\d+$/);
});

test('names are text, whatever they are', LIMIT, async (t) => {
  const nasty = ['<script>alert(1)</script>', '<img src=x onerror=alert(2)>', '"><svg onload=alert(3)>', 'a/b?c#d%2e', '\u202etxet', 'é名'.repeat(35)];
  const { core, gateway, page } = await stage(t, nasty);
  await until('all', async () => (await page.locator('.tile').count()) === nasty.length);
  await fail(core, gateway, '/0/', 3);
  await isKind(page, nasty[0], 'OPEN');
  for (const name of nasty) {
    await tile(page, name).locator('.name').click();
    await until(name, async () => /Policy in force.*consecutive failures/.test(await page.locator('#detail').textContent()));
    assert.equal(await page.locator('#detail-name').textContent(), name);
    await page.locator('#detail').getByRole('button', { name: 'Disable', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable', exact: true }).click();
    await isKind(page, name, 'DISABLED');
    await page.getByRole('button', { name: 'Close the details' }).click();
  }
  assert.equal(await page.evaluate(() => document.querySelectorAll('script:not([src]), .tile img, .tile script, #episodes img').length), 0);
});
