// What the tests stand on: the real gateway as a process, real upstreams that fail on demand, callers, and a real browser.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const binary = process.env.PORTCULLIS ?? fileURLToPath(new URL('../../target/debug/portcullis', import.meta.url));

export const TOKEN = 'correct-horse-battery';

/** An upstream whose answers take `delay` milliseconds and have `status`; both may be changed at any time. */
export async function upstream() {
  const behaviour = { status: 200, delay: 0, calls: 0 };
  const server = http.createServer((request, response) => {
    behaviour.calls += 1;
    const delay = typeof behaviour.delay === 'function' ? behaviour.delay() : behaviour.delay;
    const status = typeof behaviour.status === 'function' ? behaviour.status() : behaviour.status;
    setTimeout(() => { response.statusCode = status; response.end('ok'); }, delay);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  behaviour.url = `http://127.0.0.1:${server.address().port}`;
  behaviour.stop = () => { server.closeAllConnections(); server.close(); };
  return behaviour;
}

/** A route and a target for each name, and each with the lines. */
export function targets(names, url, lines = '') {
  const text = names.map((name, n) => {
    const quoted = JSON.stringify(name);
    return `[[route]]\npath = "/${n}/"\ntarget = ${quoted}\n[target.${quoted}]\nupstream = ["${url}"]\n${lines}\n`;
  });
  return text.join('\n');
}

async function freePort() {
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A gateway that can be killed and started again at the same addresses. */
export class Gateway {
  static async start(config, top = '') {
    const gateway = new Gateway();
    gateway.folder = await mkdtemp(join(tmpdir(), 'portcullis-e2e-'));
    const [proxy, admin] = [await freePort(), await freePort()];
    gateway.proxy = `http://127.0.0.1:${proxy}`;
    gateway.admin = `http://127.0.0.1:${admin}`;
    const listeners = `listen = "127.0.0.1:${proxy}"\nadmin = "127.0.0.1:${admin}"\n`;
    await writeFile(join(gateway.folder, 'portcullis.toml'), listeners + top + config);
    await gateway.again();
    return gateway;
  }

  async again() {
    const args = ['serve', '--config', join(this.folder, 'portcullis.toml')];
    const env = { ...process.env, PORTCULLIS_ADMIN_TOKEN: '', RUST_LOG: 'error' };
    this.process = spawn(binary, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    await until('the gateway listens', async () => (await fetch(`${this.admin}/healthz`)).ok);
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  async stop() {
    await this.kill();
    await rm(this.folder, { recursive: true });
  }

  get(path) {
    return fetch(this.proxy + path).then((answer) => answer.arrayBuffer().then(() => answer.status));
  }

  async state(name) {
    return (await (await fetch(`${this.admin}/targets/${encodeURIComponent(name)}`)).json()).state;
  }

  /** Calls a path so many times a second until it is told to stop. */
  load(path, perSecond) {
    const timer = setInterval(() => this.get(path).catch(() => {}), 1000 / perSecond);
    return () => clearInterval(timer);
  }
}

/** Waits until something holds. Exceptions are held for "not yet". */
export async function until(what, holds, patience = 20000) {
  const end = Date.now() + patience;
  let last;
  for (;;) {
    try {
      if (await holds()) return;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Chromium, with what a test needs of it beside the usual. */
export function browser(more = []) {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', ...more];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args });
}

/** A page that fails the test by whatever goes wrong in it, but for what `allowed` matches. */
export async function open(chrome, url, options = {}, allowed = null) {
  const context = await chrome.newContext({ viewport: { width: 1320, height: 860 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  const fault = (text) => { if (!allowed?.test(text)) page.faults.push(text); };
  page.on('pageerror', (error) => fault(`${error.stack ?? error}`));
  page.on('console', (message) => { if (message.type() === 'error') fault(message.text()); });
  page.on('dialog', (dialog) => { fault(`a dialog of the browser: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => { if (new URL(request.url()).origin !== new URL(url).origin) fault(`asked elsewhere: ${request.url()}`); });
  await page.goto(url);
  return page;
}
