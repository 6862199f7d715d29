// Long texts: put into the page piece by piece, when somebody asks for them.

const PIECE = 50000; // characters

function textOf(id) {
  const run = runOf(id);
  return run ? run.texts[id] : undefined;
}

// Show a text from some character on, in place of its beginning.
function showText(button, from = 0) {
  const whole = textOf(button.dataset.more);
  const box = button.previousElementSibling;
  if (whole === undefined || !box) return;
  let end = Math.min(whole.length, from + PIECE);
  if (end < whole.length && /[\uD800-\uDBFF]/.test(whole[end - 1])) end -= 1; // not between the halves of a character
  box.textContent = (from > 0 ? '…' : '') + whole.slice(from, end) + (end < whole.length ? '…' : '');
  box.classList.add('whole');
  box.tabIndex = 0; // it scrolls
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', box.dataset.label);
  const controls = button.nextElementSibling?.classList.contains('pieces') ? button.nextElementSibling : pieces(button);
  controls.dataset.from = from;
  controls.dataset.end = end;
  controls.querySelector('output').textContent =
    whole.length > PIECE ? `${(from + 1).toLocaleString('en')} to ${end.toLocaleString('en')} of ${whole.length.toLocaleString('en')}` : '';
  controls.querySelector('[data-piece="back"]').hidden = from === 0;
  controls.querySelector('[data-piece="on"]').hidden = end >= whole.length;
  button.hidden = true;
}

function pieces(button) {
  const box = document.createElement('p');
  box.className = 'pieces';
  for (const [name, label] of [['back', 'Before'], ['on', 'More'], ['copy', 'Copy all'], ['fold', 'Show less']]) {
    const one = document.createElement('button');
    one.type = 'button';
    one.dataset.piece = name;
    one.textContent = label;
    box.append(one);
  }
  box.append(document.createElement('output'));
  button.after(box);
  return box;
}

function onPiece(control) {
  const box = control.parentElement;
  const button = box.previousElementSibling;
  const from = Number(box.dataset.from);
  const whole = textOf(button.dataset.more);
  switch (control.dataset.piece) {
    case 'back':
      showText(button, Math.max(0, from - PIECE));
      break;
    case 'on':
      showText(button, Number(box.dataset.end));
      break;
    case 'copy':
      copy(whole, 'Text');
      break;
    default:
      foldText(button, box, whole);
  }
}

function foldText(button, box, whole) {
  const shown = button.previousElementSibling;
  shown.textContent = whole.slice(0, 2000) + '…';
  shown.classList.remove('whole');
  for (const name of ['tabindex', 'role', 'aria-label']) shown.removeAttribute(name);
  button.hidden = false;
  box.remove();
  button.focus();
}
