import { countOf } from '../../../core/util/values.ts';

/** A child of an element: text is never markup. */
export type Child = Node | string | number | undefined | false;

/** Attributes, and listeners under `on`. */
export type Props = Readonly<Record<string, string | number | boolean | undefined>> & {
  readonly on?: never;
};

type Listeners = Readonly<Record<string, (event: Event) => void>>;

/** Makes an element. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) {
    if (child === undefined || child === false) continue;
    element.append(typeof child === 'number' ? String(child) : child);
  }
  return element;
}

export function on<T extends EventTarget>(target: T, listeners: Listeners): T {
  for (const [name, listener] of Object.entries(listeners)) target.addEventListener(name, listener);
  return target;
}

export function button(text: string, onClick: () => void, props: Props = {}): HTMLButtonElement {
  return on(h('button', { type: 'button', ...props }, text), { click: onClick });
}

/** Sets the text, if it is another one. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function section(title: string, ...children: readonly Child[]): HTMLElement {
  const id = `h-${title.toLowerCase().replace(/\W+/g, '-')}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** A number as it is shown, with its value, by which rows are sorted. */
export interface Figure {
  readonly shown: string | HTMLElement;
  readonly value: number;
}

/** A number as it is written. */
export function figure(format: (value: number) => string, value: number): Figure {
  return { shown: format(value), value };
}

/** A cell of a table: text, a number, or an element that is made once and updated. */
export type Cell = string | number | HTMLElement | Figure;

export interface TableRow {
  readonly key: string;
  readonly cells: readonly Cell[];
}

/** Rows beyond this are counted, not shown. */
const ROWS_MAX = 200;

/** Names in the order of people: `load-9` before `load-10`. */
const byName = new Intl.Collator('en', { numeric: true }).compare;

/** A table whose rows are kept by their key, and sorted by the column whose title is clicked. */
export class Table {
  readonly element: HTMLElement;
  private readonly titles: readonly HTMLElement[];
  private readonly body = h('tbody');
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly rows = new Map<string, HTMLTableRowElement>();
  private given: readonly TableRow[] = [];
  private rowsMax = ROWS_MAX;
  /** Undefined: in the order in which the rows are given. */
  private sorted: { readonly column: number; readonly isDown: boolean } | undefined;

  constructor(
    caption: string,
    titles: readonly string[],
    private readonly empty: string,
    private readonly hint = '; use the filter',
  ) {
    this.titles = titles.map((title, column) =>
      h(
        'th',
        { scope: 'col' },
        button(title, () => this.sortBy(column), { class: 'sort' }),
      ),
    );
    const table = h(
      'table',
      {},
      h('caption', { class: 'hidden' }, caption),
      h('thead', {}, h('tr', {}, ...this.titles)),
      this.body,
    );
    this.element = h(
      'div',
      {},
      h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': caption }, table),
      this.note,
    );
  }

  /** Rows that are there already stay as they are: focus, selection and scroll are kept. */
  show(rows: readonly TableRow[], rowsMax = ROWS_MAX): void {
    this.given = rows;
    this.rowsMax = rowsMax;
    const shown = this.inOrder(rows).slice(0, rowsMax);
    const focused = document.activeElement;
    const wanted = new Set(shown.map(({ key }) => key));
    for (const [key, row] of this.rows) {
      if (wanted.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    shown.forEach(({ key, cells }, index) => {
      let row = this.rows.get(key);
      if (row === undefined) {
        row = h('tr', {}, ...cells.map((_, k) => (k === 0 ? h('th', { scope: 'row' }) : h('td'))));
        this.rows.set(key, row);
      }
      cells.forEach((cell, k) => update(row.children[k], cell));
      if (this.body.children[index] !== row)
        this.body.insertBefore(row, this.body.children[index] ?? null);
    });
    shown[0]?.cells.forEach((cell, k) =>
      this.titles[k]?.classList.toggle('number', isNumber(cell)),
    );
    // A row that has moved loses the focus.
    if (focused !== document.activeElement && this.body.contains(focused))
      (focused as HTMLElement).focus({ preventScroll: true });
    const more = rows.length - shown.length;
    setText(
      this.note,
      rows.length === 0
        ? this.empty
        : more > 0
          ? `${countOf(more, 'more row is', 'more rows are')} not shown${this.hint}`
          : '',
    );
  }

  /** Numbers begin with the largest, text with the first; the third click restores the order. */
  private sortBy(column: number): void {
    const { sorted } = this;
    const isFirstDown = this.given.some(({ cells }) => isNumber(cells[column] ?? ''));
    if (sorted?.column !== column) this.sorted = { column, isDown: isFirstDown };
    else if (sorted.isDown === isFirstDown) this.sorted = { column, isDown: !isFirstDown };
    else this.sorted = undefined;
    this.titles.forEach((title, k) => {
      if (k !== this.sorted?.column) title.removeAttribute('aria-sort');
      else title.setAttribute('aria-sort', this.sorted.isDown ? 'descending' : 'ascending');
    });
    this.show(this.given, this.rowsMax);
  }

  private inOrder(rows: readonly TableRow[]): readonly TableRow[] {
    if (this.sorted === undefined) return rows;
    const { column, isDown } = this.sorted;
    const direction = isDown ? -1 : 1;
    return rows.toSorted((a, b) => direction * compare(a.cells[column], b.cells[column]));
  }
}

const isFigure = (cell: Cell): cell is Figure =>
  typeof cell === 'object' && !(cell instanceof HTMLElement);

const isNumber = (cell: Cell): boolean =>
  typeof cell === 'number' || (isFigure(cell) && typeof cell.shown === 'string');

function compare(a: Cell = '', b: Cell = ''): number {
  const value = (cell: Cell): number | string => {
    if (isFigure(cell)) return cell.value;
    return cell instanceof HTMLElement ? cell.textContent : cell;
  };
  const [one, other] = [value(a), value(b)];
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return byName(String(one), String(other));
}

function update(cell: Element | undefined, value: Cell): void {
  if (cell === undefined) return;
  const shown = isFigure(value) ? value.shown : value;
  if (shown instanceof HTMLElement) {
    if (cell.firstChild !== shown) cell.replaceChildren(shown);
  } else {
    setText(cell, typeof shown === 'number' ? shown.toLocaleString('en') : shown);
    cell.classList.toggle('number', isNumber(value));
  }
}

/**
 * Makes the content of an element equal to this. Elements of the same kind at the same place are changed and not
 * replaced, so that focus and selection stay; listeners are those of the element that was there first.
 */
export function patch(parent: Element, ...content: readonly Child[]): void {
  const wanted = h('div', {}, ...content);
  wanted.normalize();
  morph(parent, wanted);
}

function morph(present: Element, wanted: Element): void {
  const before = [...present.childNodes];
  const after = [...wanted.childNodes];
  for (const node of before.slice(after.length)) node.remove();
  after.forEach((node, k) => {
    const old = before[k];
    if (old === undefined) present.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (old instanceof Element && node instanceof Element) {
      for (const { name } of [...old.attributes])
        if (!node.hasAttribute(name)) old.removeAttribute(name);
      for (const { name, value } of node.attributes)
        if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      morph(old, node);
    } else if (old.nodeValue !== node.nodeValue) old.nodeValue = node.nodeValue;
  });
}
