import { printable } from '../../core/util/printable.ts';

/** Rows in columns as wide as they need; numbers are aligned at the right. A name with line feeds stays in its row. */
export function textTable(
  titles: readonly string[],
  cells: readonly (readonly (string | number)[])[],
): string {
  const rows = cells.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? cell : printable(cell.replaceAll('\n', '\\n')))),
  );
  const lines = [titles, ...rows];
  const widths = titles.map((_, column) =>
    Math.max(...lines.map((line) => String(line[column]).length)),
  );
  const isNumber = titles.map((_, column) =>
    rows.every((row) => typeof row[column] === 'number' || row[column] === ''),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] as number;
          const text = String(cell);
          return isNumber[column] === true ? text.padStart(width) : text.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A size for people: `1.5 GiB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
