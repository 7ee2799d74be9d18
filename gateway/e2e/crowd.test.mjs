// Two thousand targets, and those who see or steer otherwise: counts and roles, never times.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { Gateway, browser, open, targets, until, upstream } from './stage.mjs';

const LIMIT = { timeout: 90000 };
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const POLICY = 'window = "none"\nconsecutive_failures = 3\nopen_wait = "60s"\nmax_in_flight = 20';

let chrome;
let core;
before(async () => { [chrome, core] = [await browser(), await upstream()]; });
after(async () => { core.stop(); await chrome.close(); });

async function stage(t, names, options) {
  const gateway = await Gateway.start(targets(names, core.url, POLICY));
  const page = await open(chrome, gateway.admin, options);
  t.after(async () => {
    await page.context().close();
    await gateway.stop();
    core.status = 200;
    assert.deepEqual(page.faults, []);
  });
  return { gateway, page };
}

async function fail(gateway, path) {
  core.status = 500;
  for (let n = 0; n < 3; n++) await gateway.get(path);
}

const many = Array.from({ length: 2000 }, (_, n) => `tenant-${String(n).padStart(4, '0')}`);
const focused = (page) => page.evaluate(() => document.activeElement?.closest('.tile')?.dataset.name ?? document.activeElement?.id);
const isFocused = (page, wanted) => until(`the focus is at ${wanted}`, async () => (await focused(page)) === wanted);

test('of two thousand targets only those in sight cost anything', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, many);
  await until('all are known', async () => /2,000 targets/.test(await page.locator('#shown').textContent()));
  const tiles = () => page.locator('.tile').count();
  // Four columns, five rows in sight, two to spare on each side.
  assert.ok((await tiles()) >= 12 && (await tiles()) <= 48, `${await tiles()} tiles`);
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(nodes < 2500, `${nodes} nodes`);

  // Where one target is called, only its tile is written.
  const stop = gateway.load('/0/', 5);
  t.after(stop);
  await page.evaluate(() => {
    [window.changed, window.ticks] = [0, 0];
    // One target is called all the time, so each event moves its graph.
    new MutationObserver(() => { window.ticks += 1; }).observe(document.querySelector('.tile .asked'), { attributes: true });
    new MutationObserver((records) => { window.changed += records.length; }).observe(document.body,
      { subtree: true, childList: true, attributes: true, characterData: true });
  });
  /** What is written during four events of the stream. */
  const written = async () => {
    const asOf = () => page.evaluate(() => window.ticks);
    const end = (await asOf()) + 4;
    await page.evaluate(() => { window.changed = 0; });
    await until('four events', async () => (await asOf()) >= end);
    return page.evaluate(() => window.changed);
  };
  const quiet = await written();
  assert.ok(quiet > 0 && quiet < 150, `${quiet} changes while one target is called`);

  // Calls to every sixth target: still only what is in sight is written.
  await Promise.all(many.slice(0, 300).map((_, n) => gateway.get(`/${n * 6}/`)));
  const busy = await written();
  assert.ok(busy < 2000, `${busy} changes after calls to many`);

  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until('the last is there', async () => (await page.getByText('tenant-1999', { exact: true }).count()) === 1);
  assert.ok((await tiles()) <= 48);
  stop();
  await fail(gateway, '/1500/');
  await page.evaluate(() => scrollTo(0, 0));
  await until('the worst is first', async () => (await page.locator('.tile .name').first().textContent()) === 'tenant-1500');

  await page.getByLabel('Search targets by name').fill('-199');
  await until('found', async () => /10 of 2,000/.test(await page.locator('#shown').textContent()));
  assert.equal(await tiles(), 10);
  await page.getByLabel('Search targets by name').fill('no such');
  await until('none', async () => (await page.locator('#empty').textContent()) === 'No target is like that.');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /1 open/ }).click();
  await until('filtered', async () => /1 of 2,000/.test(await page.locator('#shown').textContent()));
  assert.equal(await tiles(), 1);
});

test('the focus stays at its target wherever that goes', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, many.slice(0, 400));
  await until('all are known', async () => /400 targets/.test(await page.locator('#shown').textContent()));
  await page.locator('.tile .name').nth(1).focus();
  await isFocused(page, 'tenant-0001');
  // It becomes the worst, and another one before it.
  await fail(gateway, '/1/');
  await until('first', async () => (await page.locator('.tile .name').first().textContent()) === 'tenant-0001');
  await isFocused(page, 'tenant-0001');
  await fail(gateway, '/0/');
  await until('second', async () => (await page.locator('.tile .name').nth(1).textContent()) === 'tenant-0001');
  await isFocused(page, 'tenant-0001');
  // From the far end it still is where the tabulator leads.
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until('far', async () => (await page.getByText('tenant-0399', { exact: true }).count()) === 1);
  await isFocused(page, 'tenant-0001');
  const order = await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => Number(tile.ariaPosInSet)));
  assert.deepEqual(order, order.toSorted((a, b) => a - b), 'read in the order of ranks');
});

test('everything is done by the keyboard alone', LIMIT, async (t) => {
  const { gateway, page } = await stage(t, ['audit', 'claims', 'core-banking', 'rates', 'search', 'sms']);
  await until('all', async () => (await page.locator('.tile').count()) === 6);
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  await press('/');
  await isFocused(page, 'search');
  await page.keyboard.type('a');
  await until('filtered', async () => (await page.locator('.tile').count()) === 5);
  await press('Escape');
  // Past the filters and the order there is one stop for all tiles.
  for (let n = 0; n < 10 && (await focused(page)) !== 'audit'; n++) await press('Tab');
  await isFocused(page, 'audit');
  await press('ArrowRight', 'ArrowRight');
  await isFocused(page, 'core-banking');
  await press('End');
  await isFocused(page, 'sms');
  await press('Home', 'ArrowDown');
  await isFocused(page, 'search');
  await press('ArrowUp', 'ArrowRight', 'Enter');
  await isFocused(page, 'detail-name');
  await press('Tab', 'Tab');
  await press('Enter');
  await isFocused(page, 'confirm-no');
  // Return alone does nothing that wasn't meant.
  await press('Enter');
  assert.equal(await gateway.state('claims'), 'CLOSED');
  await press('Enter', 'Tab', 'Enter');
  await until('forced', async () => (await gateway.state('claims')) === 'FORCED_OPEN');
  await until('it is told', async () => /FORCED|Forced open of claims/i.test(await page.locator('#live').textContent()));
  assert.ok(await page.evaluate(() => document.activeElement.closest('#detail') !== null), 'the focus stays in the detail');
  await press('Escape');
  await isFocused(page, 'claims');
  assert.equal(await page.locator('#detail').isVisible(), false);
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1320, 390]) {
    test(`nothing keeps anybody out: ${colorScheme}, ${width} wide`, LIMIT, async (t) => {
      const { gateway, page } = await stage(t, ['claims', 'core-banking', 'rates', 'sms', 'audit'],
        { colorScheme, viewport: { width, height: 860 }, reducedMotion: 'reduce' });
      for (const action of ['1/force-open', '2/disable']) {
        const [n, what] = action.split('/');
        await fetch(`${gateway.admin}/targets/${['claims', 'core-banking', 'rates'][n]}/${what}`, { method: 'POST' });
      }
      await fail(gateway, '/0/');
      await until('all states', async () => (await page.locator('.tile[data-kind="OPEN"], .tile[data-kind="FORCED_OPEN"], .tile[data-kind="DISABLED"]').count()) === 3);
      await look(page);
      await page.locator('.tile .name').first().click();
      await until('the policy', async () => /consecutive failures/.test(await page.locator('#detail').textContent()));
      await look(page);
      await page.locator('#detail .buttons button').first().click();
      await look(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      assert.ok(wide, 'nothing sticks out sideways');
    });
  }
}

async function look(page) {
  // Its own policy lets a page load nothing: the checker comes by the debugger.
  const { readFile } = await import('node:fs/promises');
  await page.evaluate(await readFile(axe, 'utf8'));
  const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations', 'passes'] }));
  const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(bad.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => [node.html, node.failureSummary])]), []);
  assert.ok(passes.length >= 20, `${passes.length} rules looked`);
}
