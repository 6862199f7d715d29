// The page: what is shown, what buttons do, the theme, printing, and what a live page is told.

function openRun(run) {
  Story.all.clear();
  const box = byId('items');
  if (data.shown !== run.key) {
    swap('head', run.head.html);
    swap('charts', run.charts.html);
    byId('run').hidden = false;
    const overview = byId('runs');
    if (overview) overview.hidden = true;
    document.body.classList.remove('overview');
    byId('skip').href = '#story';
    byId('shown-run').textContent = run.run_id;
    data.shown = run.key;
  }
  search.words = byId('search').value = '';
  mainStory = new Story(box, run);
  fillFilter(run);
  byId('filter').value = '';
  count();
}

// Put the head or the charts of another run where they stand.
function swap(name, html) {
  const holder = document.createElement('template');
  fill(holder, html);
  const fresh = holder.content.firstElementChild;
  const old = document.querySelector(`#run > section.${name}`);
  if (old) old.replaceWith(fresh);
  else byId('run').insertBefore(fresh, name === 'head' ? byId('run').firstChild : byId('items').parentElement);
}

function openRuns() {
  const overview = byId('runs');
  if (!overview) return false;
  overview.hidden = false;
  document.body.classList.add('overview');
  byId('skip').href = '#runs-name';
  byId('search').value = '';
  onSearch();
  byId('run').hidden = true;
  byId('shown-run').textContent = '';
  Story.all.clear();
  mainStory = null;
  data.shown = null;
  window.scrollTo(0, 0);
  return true;
}

function onHash() {
  const id = placeInAddress();
  const element = id && byId(id);
  if (!id || element?.closest('#runs')) {
    openRuns();
    element?.scrollIntoView();
    element?.focus();
  } else if (id === 'story') element.focus();
  else if (!reveal(id)) announce('That place is not on this page');
}

function placeInAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

// --- theme ---

const THEMES = ['system', 'dark', 'light'];

function setTheme(name) {
  if (name === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId('theme').textContent = `Theme: ${name}`;
  try {
    localStorage.setItem('tenlines-theme', name);
  } catch {
    // a file may have no storage
  }
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || 'system') + 1) % THEMES.length]);
}

// --- what is pressed ---

function onClick(event) {
  const target = event.target.closest('button, a, [data-go]');
  if (!target) return;
  const { more, piece, copy: text, child, go } = target.dataset;
  if (more) showText(target);
  else if (piece) onPiece(target);
  else if (text) copy(text, 'Command');
  else if (child) (target.getAttribute('aria-expanded') === 'true' ? closeChild : openChild)(target);
  else if (go) location.hash = go;
  else if (target.matches('th button')) sortBy(target);
  else if (target.dataset.rows) showRows(target);
  else if (target.matches('a.link')) {
    event.preventDefault();
    const id = target.getAttribute('href').slice(1);
    copyLink(id);
    reveal(id, { focus: false });
  } else if (target.matches('a[href^="#"]') && target.hash === location.hash) onHash();
}

// --- a live page ---

function put(fragment) {
  const one = typeof fragment === 'string' ? JSON.parse(fragment) : fragment;
  const run = runOf(one.id);
  if (!run) return;
  Object.assign(run.texts, one.texts);
  const name = run.key ? one.id.slice(run.key.length + 1) : one.id;
  if (name === 'head' || name === 'charts') {
    run[name] = one;
    const old = byId(one.id);
    if (old) replace(old, one.html);
    return;
  }
  const isNew = !run.places.has(one.id);
  run.put(one);
  storyOf(run)?.changed(one, isNew);
  if (isNew && mainStory?.run === run) fillFilter(run);
}

// --- begin ---

document.addEventListener('click', onClick);
document.addEventListener('keydown', onKey);
document.addEventListener('toggle', (event) => onToggle(event.target), true);
window.addEventListener('hashchange', onHash);
window.addEventListener('beforeprint', () => {
  printing = true;
  Story.all.forEach((story) => story.mountAll());
});
window.addEventListener('afterprint', () => { printing = false; });
byId('search').addEventListener('input', onSearch);
byId('search').form.addEventListener('submit', (event) => event.preventDefault());
byId('filter').addEventListener('change', refilter);
byId('next').addEventListener('click', () => goToFind(1));
byId('previous').addEventListener('click', () => goToFind(-1));
byId('unfold').addEventListener('click', () => setUnfolded(!unfolded));
byId('theme').addEventListener('click', nextTheme);
byId('help-button').addEventListener('click', () => byId('help').showModal());
try {
  setTheme(THEMES.includes(localStorage.getItem('tenlines-theme')) ? localStorage.getItem('tenlines-theme') : 'system');
} catch {
  setTheme('system');
}
startComparing();
if (data.shown !== null) openRun(runs.get(data.shown));
if (location.hash) onHash();
else openRuns();
window.tenlines = { put, reveal };
