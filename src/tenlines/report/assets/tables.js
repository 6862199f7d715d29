// Tables that are sorted by their headings.

function sortBy(button) {
  const heading = button.closest('th');
  const table = heading.closest('table');
  const column = [...heading.parentElement.children].indexOf(heading);
  const down = heading.getAttribute('aria-sort') === 'ascending';
  for (const one of heading.parentElement.children) one.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const body = table.tBodies[0];
  const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent.trim();
  const isNumber = heading.classList.contains('number');
  const sign = down ? -1 : 1;
  const order = (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (!isNumber) return sign * a.localeCompare(b);
    if (a === '' || b === '') return (a === '') - (b === ''); // what is not known stays at the end
    return sign * (Number(a) - Number(b));
  };
  body.append(...[...body.rows].sort(order));
}
