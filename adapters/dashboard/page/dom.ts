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

/** Adds listeners. */
export function on<T extends EventTarget>(target: T, listeners: Listeners): T {
  for (const [name, listener] of Object.entries(listeners)) target.addEventListener(name, listener);
  return target;
}

/** A button with a visible name. */
export function button(text: string, onClick: () => void, props: Props = {}): HTMLButtonElement {
  return on(h('button', { type: 'button', ...props }, text), { click: onClick });
}

/** Sets the text, if it is another one. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** A section with a heading. */
export function section(title: string, ...children: readonly Child[]): HTMLElement {
  const id = `h-${title.toLowerCase().replace(/\W+/g, '-')}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** A cell of a table: text, or an element that is made once and updated. */
export type Cell = string | number | HTMLElement;

export interface TableRow {
  readonly key: string;
  readonly cells: readonly Cell[];
}

/** Rows beyond this are counted, not shown. */
const ROWS_MAX = 200;

/** A table whose rows are kept by their key. */
export class Table {
  readonly element: HTMLElement;
  private readonly body = h('tbody');
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly rows = new Map<string, HTMLTableRowElement>();

  constructor(
    caption: string,
    titles: readonly string[],
    private readonly empty: string,
    private readonly hint = '; use the filter',
  ) {
    const head = h('tr', {}, ...titles.map((title) => h('th', { scope: 'col' }, title)));
    const table = h(
      'table',
      {},
      h('caption', { class: 'hidden' }, caption),
      h('thead', {}, head),
      this.body,
    );
    this.element = h(
      'div',
      {},
      h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': caption }, table),
      this.note,
    );
  }

  show(rows: readonly TableRow[]): void {
    const shown = rows.slice(0, ROWS_MAX);
    const left = new Set(this.rows.keys());
    shown.forEach(({ key, cells }, index) => {
      left.delete(key);
      let row = this.rows.get(key);
      if (row === undefined) {
        row = h('tr', {}, ...cells.map((_, k) => (k === 0 ? h('th', { scope: 'row' }) : h('td'))));
        this.rows.set(key, row);
      }
      cells.forEach((cell, k) => update(row.children[k], cell));
      if (this.body.children[index] !== row)
        this.body.insertBefore(row, this.body.children[index] ?? null);
    });
    for (const key of left) {
      this.rows.get(key)?.remove();
      this.rows.delete(key);
    }
    const more = rows.length - shown.length;
    setText(
      this.note,
      rows.length === 0 ? this.empty : more > 0 ? `${more} more are not shown${this.hint}` : '',
    );
  }
}

function update(cell: Element | undefined, value: Cell): void {
  if (cell === undefined) return;
  if (value instanceof HTMLElement) {
    if (cell.firstChild !== value) cell.replaceChildren(value);
  } else {
    setText(cell, String(value));
    cell.classList.toggle(
      'number',
      typeof value === 'number' || /^[\d.,]+( \S{1,5})?$/.test(value),
    );
  }
}
