// Enhances the reference: theme, search, tabs that agree, copying. The page can be read without it.
const root = document.documentElement;
const chosen = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    // Storage can be forbidden; choices then last as long as the page.
    return null;
  }
};
const choose = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {}
};
const theme = chosen('theme');
if (theme) root.dataset.theme = theme;

addEventListener('DOMContentLoaded', () => {
  enhanceTheme();
  enhanceContents();
  enhanceTabs();
  if (navigator.clipboard) enhanceCopying();
  enhanceSearch();
});

function enhanceTheme() {
  const button = document.querySelector('.theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const show = () => {
    button.lastChild.textContent = isDark() ? 'Light' : 'Dark';
  };
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    choose('theme', root.dataset.theme);
    show();
  });
  system.addEventListener('change', show);
  show();
  button.hidden = false;
}

/** Marks the section that is being read, and closes the contents on a phone once one was chosen. */
function enhanceContents() {
  const contents = document.getElementById('contents');
  const links = new Map([...contents.querySelectorAll(':scope > ul a')].map((link) => [link.hash.slice(1), link]));
  contents.addEventListener('click', ({ target }) => {
    if (target.closest('a')) contents.hidePopover();
  });
  const headings = [...document.querySelectorAll('main :is(h2, h3)[id]')].filter(({ id }) => links.has(id));
  let current;
  const mark = () => {
    const heading = headings.findLast((each) => each.getBoundingClientRect().top < 120) ?? headings[0];
    if (heading === current) return;
    links.get(current?.id)?.removeAttribute('aria-current');
    current = heading;
    const link = links.get(heading.id);
    link.setAttribute('aria-current', 'true');
    if (contents.scrollHeight > contents.clientHeight) link.scrollIntoView({ block: 'nearest' });
  };
  let waiting = false;
  addEventListener(
    'scroll',
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    },
    { passive: true },
  );
  mark();
}

/** A language that was chosen in one place is chosen everywhere. */
function enhanceTabs() {
  const select = (language) => {
    for (const tab of document.querySelectorAll(`.tabs input[data-language="${CSS.escape(language)}"]`))
      tab.checked = true;
  };
  const language = chosen('language');
  if (language) select(language);
  document.addEventListener('change', ({ target }) => {
    const picked = target.dataset.language;
    if (!picked) return;
    // What is above must not push the tab away from under the pointer.
    const before = target.parentElement.getBoundingClientRect().top;
    select(picked);
    scrollBy({ top: target.parentElement.getBoundingClientRect().top - before, behavior: 'instant' });
    choose('language', picked);
  });
}

function enhanceCopying() {
  for (const button of document.querySelectorAll('.copy')) {
    button.hidden = false;
    const label = button.lastChild;
    button.addEventListener('click', async () => {
      const shown = [...button.closest('.code').querySelectorAll('pre')].find(({ offsetParent }) => offsetParent);
      try {
        await navigator.clipboard.writeText(shown.textContent);
        label.textContent = 'Copied';
      } catch {
        label.textContent = 'Not copied';
      }
      setTimeout(() => {
        label.textContent = 'Copy';
      }, 2000);
    });
  }
}

/** Everything that can be found: headings, and fields with the path to them. */
function searchable() {
  const places = [];
  let section;
  for (const element of document.querySelectorAll('main :is(h2, h3)[id], .fields li[id]')) {
    const isHeading = element.matches('h2, h3');
    const name = isHeading ? element.firstChild.textContent : element.querySelector('.name').textContent;
    const about = isHeading ? element.parentElement.querySelector('.endpoint') : element.querySelector(':scope > p');
    if (isHeading) section = { id: element.id, name };
    const path = element.id
      .slice(section.id.length + 1)
      .split('.')
      .slice(0, -1);
    places.push({
      id: element.id,
      name,
      where: isHeading ? (about?.textContent ?? '') : [section.name, ...path].join(' › '),
      text: `${name} ${element.id} ${about?.textContent ?? ''}`.toLowerCase(),
      // Headings come first, then what requests have, then the rest.
      rank: isHeading ? 0 : /^(path|query|header|body)/.test(path[0]) ? 1 : 2,
    });
  }
  return places;
}

const MOST_FOUND = 30;

function enhanceSearch() {
  const input = document.getElementById('search');
  const list = document.getElementById('found');
  const contents = document.getElementById('contents');
  let places;
  let selected = -1;

  const close = () => {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const highlight = (index) => {
    const options = list.children;
    options[selected]?.setAttribute('aria-selected', 'false');
    selected = Math.max(0, Math.min(index, options.length - 1));
    const option = options[selected];
    if (!option?.dataset.id) return;
    option.setAttribute('aria-selected', 'true');
    option.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', option.id);
  };
  const open = (option) => {
    if (!option?.dataset.id) return;
    const { id } = option.dataset;
    close();
    input.value = '';
    if (contents.matches(':popover-open')) contents.hidePopover();
    const target = document.getElementById(id);
    for (let outer = target.parentElement?.closest('details'); outer; outer = outer.parentElement.closest('details')) {
      outer.open = true;
    }
    location.hash = id;
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
  };
  const find = () => {
    const query = input.value.trim().toLowerCase();
    const words = query.split(/\s+/).filter(Boolean);
    selected = -1;
    if (words.length === 0) return close();
    places ??= searchable();
    const score = ({ name, rank }) => {
      const lower = name.toLowerCase();
      return (lower === query ? 0 : lower.startsWith(query) ? 3 : lower.includes(query) ? 6 : 9) + rank;
    };
    const found = places
      .filter(({ text }) => words.every((word) => text.includes(word)))
      .sort((one, other) => score(one) - score(other))
      .slice(0, MOST_FOUND);
    list.replaceChildren(...(found.length > 0 ? found : [{ name: 'Nothing found', where: '' }]).map(optionOf));
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    highlight(0);
  };

  input.addEventListener('input', find);
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) highlight(selected + step);
    else if (event.key === 'Enter') open(list.hidden ? undefined : list.children[selected]);
    else if (event.key === 'Escape' && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  // Before the input loses the focus.
  list.addEventListener('pointerdown', (event) => event.preventDefault());
  list.addEventListener('click', ({ target }) => open(target.closest('li')));
  addEventListener('keydown', (event) => {
    const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (getComputedStyle(contents).display === 'none') contents.showPopover();
    input.focus();
  });
  document.querySelector('search').hidden = false;
}

function optionOf({ id, name, where }, index) {
  const option = document.createElement('li');
  option.role = 'option';
  option.id = `found-${index}`;
  option.ariaSelected = 'false';
  if (id) option.dataset.id = id;
  const place = document.createElement('span');
  place.textContent = where;
  option.append(name, place);
  return option;
}
