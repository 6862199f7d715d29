// Two runs side by side: steps that did the same stand on one line.

const CELLS = 9e6; // most pairs of steps that are looked at
const NEAR = 2; // equal steps that stay in sight around what differs

function startComparing() {
  for (const id of ['one', 'another']) byId(id)?.addEventListener('change', compare);
  if (byId('both')) compare();
}

const stepsOf = (run) => run.items.filter((item) => item.path.length);

function compare() {
  const [one, another] = [runs.get(byId('one').value), runs.get(byId('another').value)];
  const pairs = paired(stepsOf(one), stepsOf(another));
  const apart = pairs.filter((pair) => !pair.same).length;
  const first = pairs.findIndex((pair) => !pair.same);
  const most = `${apart.toLocaleString('en')} of ${pairs.length.toLocaleString('en')} lines differ.`;
  if (!apart) byId('compared').textContent = `All ${pairs.length.toLocaleString('en')} steps are the same.`;
  else byId('compared').textContent = first ? `The same up to step ${first.toLocaleString('en')}; ${most}` : `They part at the first step; ${most}`;
  const table = document.createElement('table');
  table.className = 'both';
  fill(table, '<colgroup><col><col><col></colgroup><thead></thead><tbody></tbody>');
  table.tHead.append(headings(one, another));
  ['status', 'steps', 'calls', 'tokens', 'dollars', 'time'].forEach((name, at) =>
    table.tHead.append(rowOf([name, one.facts[at], another.facts[at]], 'th')));
  pairs.forEach((pair, at) => { pair.hidden = pair.same && !pairs.slice(Math.max(0, at - NEAR), at + NEAR + 1).some((near) => !near.same); });
  const body = table.tBodies[0];
  for (let at = 0; at < pairs.length; at += 1) {
    if (!pairs[at].hidden) {
      body.append(pairRow(pairs[at]));
      continue;
    }
    let end = at;
    while (end < pairs.length && pairs[end].hidden) end += 1;
    body.append(foldedRow(pairs.slice(at, end)));
    at = end - 1;
  }
  byId('both').replaceChildren(table);
}

function headings(one, another) {
  const row = rowOf(['', '', ''], 'th');
  [one, another].forEach((run, at) => {
    const link = document.createElement('a');
    link.href = `#${run.id('head')}`;
    link.textContent = run.run_id;
    row.children[at + 1].append(link);
  });
  return row;
}

function rowOf(texts, kind) {
  const row = document.createElement('tr');
  texts.forEach((text, at) => {
    const cell = document.createElement(at === 0 && text && kind === 'th' ? 'th' : 'td');
    if (cell.tagName === 'TH') cell.scope = 'row';
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}

function pairRow(pair) {
  const row = rowOf(['', '', ''], 'td');
  row.className = pair.same ? '' : 'apart';
  row.children[0].textContent = pair.same ? '=' : '≠';
  row.children[0].setAttribute('aria-label', pair.same ? 'the same' : 'differs');
  [pair.one, pair.another].forEach((item, at) => {
    const cell = row.children[at + 1];
    if (!item) {
      cell.textContent = 'no such step';
      cell.className = 'missing';
      return;
    }
    const link = document.createElement('a');
    link.href = `#${item.id}`;
    link.className = 'place';
    link.textContent = item.id.replace(/^r\d+-/, '').replace('-', ' ');
    cell.append(link);
    for (const path of item.path) {
      const line = document.createElement('code');
      line.textContent = path || '(nothing)';
      cell.append(line);
    }
  });
  return row;
}

function foldedRow(pairs) {
  const row = rowOf(['=', ''], 'td');
  row.children[1].colSpan = 2;
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.rows = pairs.length;
  button.textContent = `Show ${pairs.length.toLocaleString('en')} equal steps`;
  button.pairs = pairs;
  row.children[1].append(button);
  return row;
}

function showRows(button) {
  const row = button.closest('tr');
  const rows = button.pairs.slice(0, 500).map(pairRow);
  const rest = button.pairs.slice(500);
  row.replaceWith(...rows, ...(rest.length ? [foldedRow(rest)] : []));
  rows[0].querySelector('a')?.focus();
}

// Steps in pairs: the longest common subsequence stands side by side; what is between, in its order.
function paired(ones, others) {
  const key = (item) => item.path.join('\n');
  const [a, b] = [ones.map(key), others.map(key)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let tail = 0;
  while (tail < a.length - start && tail < b.length - start && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [m, n] = [a.length - tail - start, b.length - tail - start];
  const same = [];
  for (let at = 0; at < start; at += 1) same.push([at, at]);
  if (m * n <= CELLS) same.push(...common(a.slice(start, start + m), b.slice(start, start + n)).map(([x, y]) => [x + start, y + start]));
  for (let at = 0; at < tail; at += 1) same.push([a.length - tail + at, b.length - tail + at]);
  const pairs = [];
  let [x, y] = [0, 0];
  for (const [i, j] of [...same, [a.length, b.length]]) {
    while (x < i || y < j) {
      pairs.push({ one: x < i ? ones[x] : null, another: y < j ? others[y] : null, same: false });
      x = Math.min(i, x + 1);
      y = Math.min(j, y + 1);
    }
    if (i < a.length && j < b.length) {
      pairs.push({ one: ones[i], another: others[j], same: true });
      [x, y] = [i + 1, j + 1];
    }
  }
  return pairs;
}

function common(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      found.push([i, j]);
      [i, j] = [i + 1, j + 1];
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return found;
}
