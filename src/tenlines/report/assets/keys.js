// The keyboard. Every key does what a button or a link does too.

function here() {
  return document.querySelector('.item.current');
}

function move(by) {
  const story = mainStory;
  if (!story || !story.items.length) return;
  const current = here();
  const at = current && story.at.has(current.id) ? story.at.get(current.id) + by : by > 0 ? 0 : story.items.length - 1;
  const item = story.items[Math.min(story.items.length - 1, Math.max(0, at))];
  const element = story.element(item.id);
  if (element) land(element, true);
}

function foldHere() {
  const all = [...(here()?.querySelectorAll('details') || [])];
  const open = all.some((one) => !one.open);
  all.forEach((one) => { one.open = open; });
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  ArrowRight: () => move(1),
  ArrowLeft: () => move(-1),
  o: foldHere,
  e: () => setUnfolded(!unfolded),
  '/': () => byId('search').focus(),
  f: () => mainStory && byId('filter').focus(),
  n: () => goToFind(1),
  p: () => goToFind(-1),
  g: () => mainStory && land(mainStory.element(mainStory.items[0].id), true),
  G: () => mainStory && land(mainStory.element(mainStory.items[mainStory.items.length - 1].id), true),
  l: () => here() && copyLink(here().id),
  t: () => nextTheme(),
  '?': () => byId('help').showModal(),
};

function onKey(event) {
  const typing = event.target.matches('input, select, textarea, [contenteditable]');
  if (event.target.id === 'search') onSearchKey(event);
  if (typing || event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  const sideways = event.key.startsWith('Arrow') && event.target.closest('pre, .drawing, .scroll');
  const act = sideways ? undefined : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function onSearchKey(event) {
  if (event.key === 'Enter') {
    event.preventDefault();
    goToFind(event.shiftKey ? -1 : 1);
  } else if (event.key === 'Escape') {
    clearSearch();
    byId('search').blur();
  }
}

function copyLink(id) {
  history.replaceState(null, '', `#${id}`);
  copy(location.href, 'Link');
}
