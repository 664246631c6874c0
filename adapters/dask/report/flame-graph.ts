import { escape } from '../../dashboard/routes/plain-page.ts';
import { toNumber } from '../codec/index.ts';
import { entriesOf, isFields } from '../codec/values.ts';

const WIDTH = 1200;
const ROW = 18;
const ROWS_MAX = 60;
const LETTER = 6.6;

/** Frames with a smaller share of all samples are left out. */
const SHARE_MIN = 0.002;

const COLOURS = ['#f6c177', '#e9a76b', '#f2b8a0', '#d9c58b', '#e8b4bc'];

/** A profile as a drawing: a box is a function, as wide as the time in it, with what it calls below. */
export function flameGraph(profile: unknown, title: string): string {
  const total = isFields(profile) ? (toNumber(profile['count']) ?? 0) : 0;
  if (total === 0) return '<p>Nothing was sampled: workers look every 10 ms at what they run.</p>';
  const boxes: string[] = [];
  let rows = 0;
  const draw = (node: unknown, left: number, row: number): void => {
    if (!isFields(node) || row >= ROWS_MAX) return;
    rows = Math.max(rows, row + 1);
    const count = toNumber(node['count']) ?? 0;
    boxes.push(box(node, { left, row, share: count / total }));
    let at = left;
    for (const child of childrenOf(node).toSorted((a, b) => countOf(b) - countOf(a))) {
      const share = countOf(child) / total;
      if (share < SHARE_MIN) break;
      draw(child, at, row + 1);
      at += share * WIDTH;
    }
  };
  draw(profile, 0, 0);
  return `<svg viewBox="0 0 ${WIDTH} ${rows * ROW}" role="img" aria-label="${escape(title)}" class="flame">${boxes.join('')}</svg>`;
}

/** Some releases do not count the innermost function: an only one has all samples of its caller. */
function childrenOf(node: Readonly<Record<string, unknown>>): readonly unknown[] {
  const children = entriesOf(node['children']).map(([, child]) => child);
  const [only] = children;
  const isUncounted = children.length === 1 && isFields(only) && countOf(only) === 0;
  return isUncounted ? [{ ...only, count: node['count'] }] : children;
}

function countOf(node: unknown): number {
  return isFields(node) ? (toNumber(node['count']) ?? 0) : 0;
}

function box(
  node: Readonly<Record<string, unknown>>,
  { left, row, share }: { left: number; row: number; share: number },
): string {
  const description = isFields(node['description']) ? node['description'] : {};
  const name = row === 0 ? 'all' : String(description['name']);
  const file = typeof description['filename'] === 'string' ? description['filename'] : '';
  const place = file === '' ? '' : ` ${file}:${String(toNumber(description['line_number']) ?? '')}`;
  const percent = (100 * share).toFixed(1);
  const width = share * WIDTH;
  const letters = Math.floor((width - 6) / LETTER);
  const label = letters < 2 ? '' : name.slice(0, letters);
  const colour = COLOURS[(name.length + row) % COLOURS.length] ?? '';
  const y = row * ROW;
  return (
    `<g><title>${escape(`${name}${place}: ${percent} %`)}</title>` +
    `<rect x="${left.toFixed(1)}" y="${y}" width="${Math.max(0.5, width - 0.5).toFixed(1)}" height="${ROW - 1}" fill="${colour}"/>` +
    `<text x="${(left + 3).toFixed(1)}" y="${y + 13}">${escape(label)}</text></g>`
  );
}
