// Searching and filtering. Finds are marked without touching the document (CSS highlights).

const highlight = typeof Highlight === 'function' && CSS.highlights ? new Highlight() : null;
if (highlight) CSS.highlights.set('found', highlight);
const search = { words: '', finds: [], at: -1 };

const isFiltered = () => Boolean(byId('filter').value);

function onSearch() {
  search.words = byId('search').value.trim().toLowerCase();
  search.at = -1;
  if (document.body.classList.contains('overview')) filterRuns();
  else refilter();
}

// In the table of runs, searching leaves those that say it anywhere.
function filterRuns() {
  let many = 0;
  for (const row of byId('runs-table').tBodies[0].rows) {
    const run = runs.get(row.dataset.key);
    const isFound = !search.words || row.textContent.toLowerCase().includes(search.words) || run.items.some((item) => run.said(item).includes(search.words));
    row.hidden = !isFound;
    many += isFound;
  }
  byId('found').textContent = search.words ? `${many.toLocaleString('en')} of ${byId('runs-table').tBodies[0].rows.length.toLocaleString('en')} runs` : '';
}

// Show what the filter lets through, and find the words in it.
function refilter() {
  const run = mainStory?.run;
  if (!run) return;
  const tag = byId('filter').value;
  const items = tag ? run.items.filter((item) => item.tags.includes(tag)) : run.items;
  if (tag || mainStory.items !== run.items) mainStory.show(items);
  search.finds = search.words ? items.filter((item) => run.said(item).includes(search.words)).map((item) => item.id) : [];
  if (search.at >= search.finds.length) search.at = -1;
  if (highlight) highlight.clear();
  document.querySelectorAll('.chunk').forEach((chunk) => mark(chunk));
  count();
  if (tag) announce(`${items.length.toLocaleString('en')} items`);
}

function count() {
  const many = search.finds.length.toLocaleString('en');
  const at = search.at >= 0 ? `${(search.at + 1).toLocaleString('en')} of ` : '';
  byId('found').textContent = search.words ? `${at}${many} found` : '';
}

function clearSearch() {
  byId('search').value = '';
  if (document.body.classList.contains('overview')) {
    onSearch();
    return;
  }
  byId('filter').value = '';
  search.words = '';
  search.at = -1;
  refilter();
}

function goToFind(by) {
  if (!search.finds.length) return;
  const many = search.finds.length;
  search.at = search.at < 0 ? (by > 0 ? 0 : many - 1) : (search.at + by + many) % many;
  const id = search.finds[search.at];
  if (!reveal(id, { focus: false })) return;
  unfoldFinds(byId(id));
  count();
}

// Unfold what has the words inside, long texts at the place where they are.
function unfoldFinds(item) {
  const run = mainStory.run;
  for (const button of item.querySelectorAll('.more')) {
    const at = (run.texts[button.dataset.more] || '').toLowerCase().indexOf(search.words);
    if (at >= 0 && !button.previousElementSibling.textContent.toLowerCase().includes(search.words)) {
      showText(button, at < PIECE ? 0 : Math.max(0, at - 500));
    }
  }
  for (const details of item.querySelectorAll('details')) {
    if (details.textContent.toLowerCase().includes(search.words)) details.open = true;
  }
  mark(item);
  requestAnimationFrame(() => requestAnimationFrame(() => toFirst(item))); // when the item is where it stays
}

// Scroll to the first find in an item, also inside a text that scrolls.
function toFirst(item) {
  const first = rangesIn(item)[0];
  if (!first) return;
  const box = first.startContainer.parentElement.closest('.whole');
  if (box) box.scrollTop += first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
  window.scrollBy({ top: first.getBoundingClientRect().top - window.innerHeight / 2, behavior: 'instant' });
}

function rangesIn(root) {
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < 500; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue;
    for (let at = text.indexOf(search.words); at >= 0 && found.length < 500; at = text.indexOf(search.words, at + search.words.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + search.words.length);
      found.push(range);
    }
  }
  return found;
}

function mark(root) {
  if (!highlight || !search.words) return;
  for (const range of rangesIn(root)) highlight.add(range);
}

// What the filter can be set to: what there is in the run.
function fillFilter(run) {
  const tags = new Map();
  for (const item of run.items) for (const tag of item.tags) tags.set(tag, (tags.get(tag) || 0) + 1);
  const names = { step: 'Steps', remark: 'Remarks', problem: 'Problems' };
  const options = [new Option('Everything', '')];
  for (const [tag, name] of Object.entries(names)) if (tags.has(tag)) options.push(new Option(`${name} (${tags.get(tag).toLocaleString('en')})`, tag));
  const tools = [...tags.keys()].filter((tag) => tag.startsWith('tool:')).sort();
  for (const tag of tools) options.push(new Option(`${tag.slice(5)} (${tags.get(tag).toLocaleString('en')})`, tag));
  const box = byId('filter');
  const chosen = box.value;
  box.replaceChildren(...options);
  box.value = options.some((one) => one.value === chosen) ? chosen : '';
}
