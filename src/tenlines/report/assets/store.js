// What the page knows: the runs, their items in order, and their long texts.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);

class Run {
  constructor(part) {
    Object.assign(this, part);
    this.places = new Map();
    this.texts = {};
    this.words = new Map(); // id -> what is searched, made when it is first asked for
    part.items.forEach((item, at) => this.enter(item, at));
  }

  enter(item, at) {
    this.places.set(item.id, at);
    Object.assign(this.texts, item.texts);
    this.words.delete(item.id);
  }

  // Replace an item, or add it before the end.
  put(item) {
    const at = this.places.get(item.id);
    if (at === undefined) {
      const end = this.items.length && this.items[this.items.length - 1].id.endsWith('end') ? 1 : 0;
      const place = item.id === this.id('end') ? this.items.length : this.items.length - end;
      this.items.splice(place, 0, item);
      this.items.forEach((one, index) => this.places.set(one.id, index));
      this.enter(item, place);
      return place;
    }
    this.items[at] = item;
    this.enter(item, at);
    return at;
  }

  id(name) {
    return this.key ? `${this.key}-${name}` : name;
  }

  // The item that an element is in: a step for its calls, and for what is inside these.
  holder(id) {
    if (this.places.has(id)) return id;
    const found = id.match(/^(.*?)call-(\d+)-\d+/);
    if (found) {
      let step = `${found[1]}step-${found[2]}`;
      while (this.places.has(`${step}-again`)) step += '-again';
      return this.places.has(step) ? step : null;
    }
    for (let cut = id.lastIndexOf('-'); cut > 0; cut = id.lastIndexOf('-', cut - 1)) {
      if (this.places.has(id.slice(0, cut))) return id.slice(0, cut);
    }
    return null;
  }

  // All that an item says, for searching: what its HTML shows, and the whole of its long texts.
  said(item) {
    let words = this.words.get(item.id);
    if (words === undefined) {
      const whole = Object.values(item.texts || {});
      words = plain(item.html).toLowerCase() + '\n' + whole.join('\n').toLowerCase();
      this.words.set(item.id, words);
    }
    return words;
  }
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', '#34': '"', '#39': "'" };

// The text of HTML of ours: tags are never part of a text, which is escaped.
function plain(html) {
  return html.replace(/<[^>]*>/g, ' ').replace(/&(amp|lt|gt|#34|#39);/g, (_, name) => ENTITIES[name]);
}

const runs = new Map(data.runs.map((part) => [part.key, new Run(part)]));

// The run that an id belongs to.
function runOf(id) {
  const found = id.match(/^(r\d+)-/);
  return (found && runs.get(found[1])) || runs.get('') || null;
}

// Put HTML of ours into an element.
function fill(element, html) {
  element.innerHTML = html;
}

function announce(text) {
  const box = byId('say');
  box.textContent = text;
  box.classList.add('shown');
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => box.classList.remove('shown'), 2000);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  announce(`${what} copied`);
}
