// What is done by hand: asked for in a dialog, sent with the token, told by what came of it.

import { byId, show, write } from './text.js';

export const ACTIONS = {
  'force-open': { label: 'Force open', text: (name) => `Every call to ${name} is refused until somebody releases it.` },
  disable: { label: 'Disable', text: (name) => `The breaker of ${name} is off until somebody releases it: nothing protects its callers but the limit.` },
  release: { label: 'Release', text: (name) => `${name} is closed with an empty window: calls go to it again.` },
  drill: { label: 'Drill', text: (name) => `Calls to ${name} are refused for a while, to see what its callers get instead. It ends by itself.` },
  promote: {
    label: 'Promote',
    text: (name, shadow) => `The policy of the shadow ${shadow} is in force for ${name} until the configuration is read again, and the shadow is gone.`,
  },
  'end-drill': { label: 'End drill', text: (name) => `The drill of ${name} ends now, and calls go to it again.` },
};

/** The actions that make sense for a target. */
export function actionsFor(target) {
  if (target.drill_until_ms) return ['end-drill', 'force-open', 'disable'];
  return [
    ...(target.state === 'FORCED_OPEN' ? [] : ['force-open']),
    ...(target.state === 'DISABLED' ? [] : ['disable']),
    ...(target.state === 'CLOSED' ? ['drill'] : ['release']),
  ];
}

/** The token lives as long as the tab, and is sent in a header only. */
export const token = {
  get: () => sessionStorage.getItem('portcullis-token') ?? '',
  set(value) {
    if (value) sessionStorage.setItem('portcullis-token', value);
    else sessionStorage.removeItem('portcullis-token');
  },
};

/** Reads JSON from the gateway. */
export async function read(path) {
  const answer = await fetch(path, { headers: authorized({}), cache: 'no-store' });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

function authorized(headers) {
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  return headers;
}

async function send({ name, action, shadow }, operator, seconds) {
  const query = { drill: `?seconds=${seconds}`, promote: `?shadow=${encodeURIComponent(shadow)}` }[action] ?? '';
  // A header holds ASCII; what isn't is told by its code.
  const headers = authorized(operator ? { 'x-operator': encodeURI(operator) } : {});
  const answer = await fetch(`targets/${encodeURIComponent(name)}/${action}${query}`, { method: 'POST', headers });
  const body = await answer.json().catch(() => ({}));
  return { status: answer.status, body };
}

/** Asks whether it is meant, does it, and tells what came of it by `onDone`. */
export class Confirm {
  #pending = null;

  constructor(onDone, onClose) {
    this.onDone = onDone;
    this.dialog = byId('confirm');
    this.dialog.addEventListener('close', onClose);
    this.error = byId('confirm-error');
    byId('confirm-no').addEventListener('click', () => this.dialog.close());
    this.dialog.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#go();
    });
  }

  /** `shadow` is the one that is to be promoted. */
  ask(name, action, shadow = null) {
    const { label, text } = ACTIONS[action];
    this.#pending = { name, action, shadow };
    write(byId('confirm-title'), `${label}: ${shadow ?? name}?`);
    write(byId('confirm-text'), text(name, shadow));
    write(byId('confirm-yes'), label);
    write(this.error, '');
    show(byId('confirm-seconds-row'), action === 'drill');
    byId('confirm-seconds').disabled = action !== 'drill';
    show(byId('confirm-token-row'), false);
    byId('confirm-token').value = '';
    byId('confirm-operator').value = sessionStorage.getItem('portcullis-operator') ?? '';
    this.dialog.showModal();
    // Return does nothing that wasn't meant.
    byId('confirm-no').focus();
  }

  async #go() {
    const { name, action } = this.#pending;
    const given = byId('confirm-token').value;
    if (given) token.set(given);
    const operator = byId('confirm-operator').value.trim();
    sessionStorage.setItem('portcullis-operator', operator);
    const yes = byId('confirm-yes');
    yes.disabled = true;
    write(this.error, '');
    try {
      const { status, body } = await send(this.#pending, operator, byId('confirm-seconds').value);
      if (status === 401) {
        write(this.error, given || token.get() ? 'That token is not the right one.' : 'This needs the admin token.');
        token.set('');
        show(byId('confirm-token-row'), true);
        byId('confirm-token').focus();
      } else if (status !== 200) {
        write(this.error, `Refused: ${body.error ?? status}`);
      } else {
        this.dialog.close();
        this.onDone(name, action, body);
      }
    } catch {
      write(this.error, 'The gateway did not answer. Nothing may have happened; look before you try again.');
    } finally {
      yes.disabled = false;
    }
  }
}

/** The dialog for the token alone; `onChange` hears of another one. */
export class AskToken {
  constructor(onChange) {
    this.dialog = byId('ask-token');
    const value = byId('ask-token-value');
    const take = (given) => {
      token.set(given);
      value.value = '';
      this.dialog.close();
      onChange();
    };
    byId('ask-token-no').addEventListener('click', () => this.dialog.close());
    byId('ask-token-forget').addEventListener('click', () => take(''));
    this.dialog.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      take(value.value.trim());
    });
  }

  ask(text) {
    write(byId('ask-token-text'), text);
    if (!this.dialog.open) this.dialog.showModal();
  }
}
