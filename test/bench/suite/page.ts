/** The table of figures in a page of the documents, made from what a run of the suite left. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Figures } from './compare.ts';
import { markdown } from './table.ts';

const BEGIN = '<!-- Made by `npm run bench -- --from FILE --page PAGE`. -->\n\n';
const END = '\n<!-- End of what was made. -->\n';

/** Puts the table of these figures between the marks of a page. Throws when the page has none. */
export function writePage(path: string, figures: Figures): void {
  writeFileSync(path, pageWith(readFileSync(path, 'utf8'), figures));
}

/** A page, with the table of these figures between its marks. */
export function pageWith(text: string, figures: Figures): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) {
    throw new Error(
      `the page has no place for figures: it lies between "${BEGIN.trim()}" and "${END.trim()}"`,
    );
  }
  return text.slice(0, begin + BEGIN.length) + sectionOf(figures) + text.slice(end);
}

function sectionOf({ date, quick, machine, lines }: Figures): string {
  const { cpu, cores, node, dask, servedDask, load } = machine;
  const about =
    `${date.slice(0, 10)}, ${String(cores)} cores (${String(cpu)}), load ${Number(load).toFixed(1)} as it began, ` +
    `Node ${String(node)}, beside Dask ${String(dask)}; Dask ${String(servedDask)} served` +
    `${quick ? '; a quick run' : ''}.\n`;
  return `${about}\n${markdown(lines)}\n`;
}
