// A live page: it is told what changed, and tells the server what a person does.
(() => {
'use strict';
const byId = (id) => document.getElementById(id);
const live = byId('live').dataset;
const rows = byId('rows');

// --- what changed ---

// Many pages may be open; one that nobody sees gives its connection back, and asks later for what it missed.
let source = null;
let mark = live.mark;
let isOver = false;

function connect() {
  if (source || isOver || document.hidden) return;
  source = new EventSource(`${live.stream}?after=${encodeURIComponent(mark)}`);
  source.onopen = () => link('on', 'live');
  source.onerror = () => {
    link('off', 'the server does not answer');
    if (source.readyState !== EventSource.CLOSED) return;
    disconnect(); // refused, which a browser does not try again
    setTimeout(connect, 3000);
  };
  source.addEventListener('piece', (event) => {
    const piece = JSON.parse(event.data);
    (rows ? putRow : put)(piece);
  });
  source.addEventListener('mark', (event) => { mark = event.data; });
  source.addEventListener('over', (event) => {
    isOver = true;
    disconnect();
    link('off', JSON.parse(event.data));
  });
}

function disconnect() {
  source?.close();
  source = null;
}

function link(state, text) {
  const box = byId('link');
  box.className = `dim ${state}`;
  if (box.textContent !== text) box.textContent = text;
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) return connect();
  disconnect();
  link('', 'paused');
});
window.addEventListener('pagehide', disconnect);
window.addEventListener('pageshow', connect);

function made(html) {
  const holder = document.createElement('template');
  holder.innerHTML = html;
  return holder.content.firstElementChild;
}

// --- a run ---

function put(piece) {
  if (piece.id.startsWith('desk-')) putDesk(piece);
  else window.tenlines.put(piece);
}

function putDesk(piece) {
  const old = byId(piece.id);
  const fresh = made(piece.html);
  if (old && fresh) {
    keep(old, fresh);
    old.replaceWith(fresh);
  } else if (old) {
    const hadFocus = old.contains(document.activeElement);
    old.remove();
    if (hadFocus) byId('told').focus();
  } else if (fresh) {
    byId('desk-pieces').append(fresh);
  }
  arrange();
}

// What somebody was about to answer is not taken from under his hands, as long as it is the same question.
function keep(old, fresh) {
  if (old.dataset.digest !== fresh.dataset.digest) return;
  for (const field of old.querySelectorAll('input, textarea')) {
    const twin = fresh.querySelector(`[data-act="${field.form.dataset.act}"] [name="${field.name}"]`);
    if (twin && field.value !== field.defaultValue) twin.value = field.value;
  }
  for (const form of old.querySelectorAll('form[id]:not([hidden])')) open(fresh.querySelector(`[data-opens="${form.id}"]`), fresh);
}

function arrange() {
  const state = byId('desk-state');
  byId('desk-talk').hidden = state?.dataset.hears !== 'yes';
  const isEmpty = !state?.children.length && !document.querySelector('.question') && !byId('told').children.length;
  byId('desk').hidden = isEmpty;
}

function open(button, root = document) {
  const form = root.querySelector(`#${CSS.escape(button.dataset.opens)}`);
  form.hidden = !form.hidden;
  button.setAttribute('aria-expanded', String(!form.hidden));
  return form;
}

async function act(form, button) {
  const fields = new URLSearchParams(new FormData(form));
  if (button?.name) fields.set(button.name, button.value);
  if (form.dataset.call) fields.set('call', form.dataset.call);
  const digest = form.closest('.question')?.dataset.digest;
  if (digest) fields.set('digest', digest);
  const buttons = [...form.querySelectorAll('button')];
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const answer = await fetch(`${live.acts}/${form.dataset.act}`, { method: 'POST', body: fields, headers: { 'X-Tenlines-Page': live.page } });
    const isOurs = answer.headers.get('content-type')?.startsWith('application/json');
    const said = isOurs ? await answer.json() : { text: await answer.text(), next: '' };
    told(said, answer.ok);
    if (answer.ok && form.dataset.act === 'say') form.reset();
  } catch {
    told({ text: 'The server does not answer; nothing was done.', next: '' }, false);
  } finally {
    buttons.forEach((one) => { one.disabled = false; });
  }
}

function told(said, isDone) {
  const box = byId('told');
  const text = document.createElement('span');
  text.textContent = said.text;
  box.replaceChildren(text);
  box.className = `told tone-${isDone ? 'good' : 'bad'}`;
  if (said.next) {
    const command = made('<span class="command"><code></code><button type="button">Copy</button></span>');
    command.firstChild.textContent = said.next;
    command.lastChild.dataset.copy = said.next; // the page of the report copies it
    box.append(command);
  }
  arrange();
  box.focus();
}

if (!rows) {
  byId('head').after(byId('desk'));
  byId('desk').addEventListener('submit', (event) => {
    event.preventDefault();
    act(event.target, event.submitter);
  });
  byId('desk').addEventListener('click', (event) => {
    const button = event.target.closest('[data-opens]');
    if (!button) return;
    const form = open(button);
    if (!form.hidden) form.querySelector('input, textarea').focus();
  });
  arrange();
}

// --- the list ---

function putRow(piece) {
  const old = byId(piece.id);
  const holder = document.createElement('table');
  holder.innerHTML = piece.html;
  const fresh = holder.querySelector('tr');
  if (old && fresh) {
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(fresh);
    if (hadFocus) fresh.querySelector('a').focus();
  } else if (old) {
    old.remove();
  } else if (fresh) {
    rows.prepend(fresh);
  }
  if (fresh && !old) {
    fresh.classList.add('fresh');
    setTimeout(() => fresh.classList.remove('fresh'), 1500);
  }
  only();
}

function only() {
  const words = byId('only').value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows.children) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  byId('shown').textContent = words.length ? `${shown} of ${rows.children.length}` : '';
  byId('runs-table').hidden = !rows.children.length;
  byId('none').hidden = rows.children.length > 0;
}

const THEMES = ['system', 'dark', 'light'];

function setTheme(name) {
  if (name === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId('theme').textContent = `Theme: ${name}`;
  localStorage.setItem('tenlines-theme', name);
}

if (rows) {
  const kept = localStorage.getItem('tenlines-theme');
  setTheme(THEMES.includes(kept) ? kept : 'system');
  byId('theme').addEventListener('click', () => {
    setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || 'system') + 1) % THEMES.length]);
  });
  byId('only').addEventListener('input', only);
  byId('only').form.addEventListener('submit', (event) => event.preventDefault());
  document.addEventListener('keydown', (event) => {
    if (event.target.matches('input') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') {
      event.preventDefault();
      byId('only').focus();
    }
  });
  only();
}

connect();
})();
