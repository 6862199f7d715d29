// A story: the items of a run, of which only those near the view are in the document.

const CHUNK = 20; // items that come and go together
const GUESS = 150; // height of an item that was never shown, in pixels
const opened = new Set(); // ids of what was unfolded by hand
const closed = new Set(); // ids of what was folded by hand
let unfolded = false; // everything is unfolded

class Story {
  constructor(root, run) {
    this.root = root;
    this.run = run;
    this.chunks = [];
    this.watch = new IntersectionObserver((seen) => seen.forEach((one) => this.onSeen(one)), { rootMargin: '1500px 0px' });
    Story.all.add(this);
    this.show(run.items);
  }

  // Show these items, and no others.
  show(items) {
    this.watch.disconnect();
    this.items = items;
    this.at = new Map(items.map((item, index) => [item.id, index]));
    this.chunks = [];
    this.root.replaceChildren();
    for (let start = 0; start < items.length; start += CHUNK) this.add(start);
    if (this.chunks.length) this.mount(this.chunks[0]);
  }

  add(start) {
    const element = document.createElement('div');
    element.className = 'chunk';
    const chunk = { element, start, mounted: false, height: 0 };
    element.style.minHeight = `${this.itemsOf(chunk).length * GUESS}px`;
    element.chunk = chunk;
    this.chunks.push(chunk);
    this.root.append(element);
    this.watch.observe(element);
  }

  itemsOf(chunk) {
    return this.items.slice(chunk.start, chunk.start + CHUNK);
  }

  onSeen(seen) {
    const chunk = seen.target.chunk;
    if (seen.isIntersecting) this.mount(chunk);
    else if (seen.target.isConnected && !printing) this.unmount(chunk);
  }

  mount(chunk) {
    if (chunk.mounted) return;
    chunk.mounted = true;
    fill(chunk.element, this.itemsOf(chunk).map((item) => item.html).join('\n'));
    restore(chunk.element);
    chunk.element.style.minHeight = '';
    mark(chunk.element);
  }

  unmount(chunk) {
    if (!chunk.mounted || chunk.element.contains(document.activeElement)) return;
    chunk.element.style.minHeight = `${chunk.element.offsetHeight}px`;
    chunk.mounted = false;
    chunk.element.replaceChildren();
  }

  mountAll() {
    this.chunks.forEach((chunk) => this.mount(chunk));
  }

  // The element of an item, put into the document with what is beside it.
  element(id) {
    const at = this.at.get(id);
    if (at === undefined) return null;
    const number = Math.floor(at / CHUNK);
    for (const near of [number - 1, number, number + 1]) if (this.chunks[near]) this.mount(this.chunks[near]);
    return byId(id);
  }

  // An item was replaced or added.
  changed(item, isNew) {
    if (isNew || !this.at.has(item.id)) {
      this.appended(item);
      return;
    }
    this.items[this.at.get(item.id)] = item;
    const old = byId(item.id);
    if (old && this.root.contains(old)) replace(old, item.html);
  }

  appended(item) {
    if (isFiltered() && this === mainStory) {
      refilter();
      return;
    }
    this.items = this.run.items;
    this.at = new Map(this.items.map((one, index) => [one.id, index]));
    const first = Math.floor(this.at.get(item.id) / CHUNK);
    for (const chunk of this.chunks.slice(first)) {
      chunk.mounted = false;
      this.mount(chunk);
    }
    for (let start = this.chunks.length * CHUNK; start < this.items.length; start += CHUNK) {
      this.add(start);
      this.mount(this.chunks[this.chunks.length - 1]);
    }
  }
}
Story.all = new Set();
let mainStory = null;
let printing = false;

// Put new HTML in place of an element; what was unfolded, focused and asked for stays so.
function replace(old, html) {
  const focused = old.contains(document.activeElement) ? placeOf(document.activeElement) : '';
  const wholes = [...old.querySelectorAll('.pieces')].map((box) => [box.previousElementSibling.dataset.more, Number(box.dataset.from)]);
  for (const one of old.querySelectorAll('details[id]')) if (one.open) opened.add(one.id);
  const holder = document.createElement('template');
  fill(holder, html);
  const fresh = holder.content.firstElementChild;
  if (old.classList.contains('current')) fresh.classList.add('current');
  old.replaceWith(fresh);
  restore(fresh);
  for (const [id, from] of wholes) {
    const button = fresh.querySelector(`[data-more="${CSS.escape(id)}"]`);
    if (button) showText(button, from);
  }
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  mark(fresh);
}

// A selector of an element that is there again when the HTML around it was replaced.
function placeOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const holder = element.closest('[id]');
  return holder ? `#${CSS.escape(holder.id)} ${element.tagName}` : '';
}

// Unfold what was unfolded before it left the document.
function restore(root) {
  for (const one of root.querySelectorAll('details[id]')) {
    if (opened.has(one.id) || (unfolded && !closed.has(one.id))) one.open = true;
    else if (closed.has(one.id)) one.open = false;
  }
  for (const button of root.querySelectorAll('[data-child]')) if (opened.has(`child:${button.dataset.child}`)) openChild(button);
}

function onToggle(details) {
  if (!details.id) return;
  (details.open ? opened : closed).add(details.id);
  (details.open ? closed : opened).delete(details.id);
}

function setUnfolded(all) {
  unfolded = all;
  opened.clear();
  closed.clear();
  for (const one of document.querySelectorAll('.items details[id]')) one.open = all || one.id.endsWith(`message-${lastMessage(one)}`);
  byId('unfold').setAttribute('aria-pressed', String(all));
  byId('unfold').textContent = all ? 'Fold all' : 'Unfold all';
}

function lastMessage(details) {
  const all = details.parentElement.querySelectorAll(':scope > details[id*="-message-"]');
  return all.length;
}

// --- runs under calls ---

function openChild(button) {
  const run = runs.get(button.dataset.child);
  const box = button.nextElementSibling;
  if (!run || !box) return;
  button.setAttribute('aria-expanded', 'true');
  button.textContent = 'Hide its story';
  opened.add(`child:${run.key}`);
  box.hidden = false;
  if (box.story) return;
  fill(box, `${run.head.html}<div class="items"></div>`);
  box.story = new Story(box.lastElementChild, run);
}

function closeChild(button) {
  const box = button.nextElementSibling;
  button.setAttribute('aria-expanded', 'false');
  button.textContent = 'Show its story';
  opened.delete(`child:${button.dataset.child}`);
  box.hidden = true;
  if (box.story) Story.all.delete(box.story);
  box.story = null;
  box.replaceChildren();
}

function storyOf(run) {
  return [...Story.all].find((story) => story.run === run && story.root.isConnected) || null;
}

// --- going to a place ---

// Show an element wherever it is: in another run, under a call, folded, not in the document yet.
function reveal(id, { focus = true } = {}) {
  const run = runOf(id);
  if (!run) return false;
  if (!bring(run)) return false;
  const story = storyOf(run);
  const holder = run.holder(id);
  if (!story || !holder) return showPlain(id, focus);
  if (!story.at.has(holder)) clearSearch();
  const element = story.element(holder);
  if (!element) return false;
  const target = byId(id) || element;
  for (let one = target; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true;
  land(target, focus);
  return true;
}

function showPlain(id, focus) {
  const target = byId(id);
  if (!target) return false;
  for (let one = target; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true;
  land(target, focus);
  return true;
}

function land(target, focus) {
  const settle = () => target.scrollIntoView({ block: 'start' });
  settle();
  requestAnimationFrame(settle); // what came into the document above it has its height now
  document.querySelectorAll('.current').forEach((one) => one.classList.remove('current'));
  const item = target.closest('.item') || target;
  item.classList.add('current');
  const place = target.matches('details') ? target.querySelector('summary') : target;
  if (focus) place.focus({ preventScroll: true });
}

// Have the story of a run in the document: its own, or under the call that it serves.
function bring(run) {
  if (storyOf(run)) return true;
  if (run.parent && run.parent !== run.id('')) {
    if (!reveal(run.parent, { focus: false })) return false;
    const button = document.querySelector(`[data-child="${CSS.escape(run.key)}"]`);
    if (button) openChild(button);
    return Boolean(button);
  }
  openRun(run);
  return true;
}
