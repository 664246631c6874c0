/** A row of a table: its key first. */
export type Row = readonly [key: string, ...cells: (string | number)[]];

/** What changed in a table since the last time. */
export interface TableChange {
  readonly changed: readonly Row[];
  readonly gone: readonly string[];
}

/** Compares a table with what it was. */
export class TableDelta {
  private rows = new Map<string, Row>();

  /** O(cells). */
  next(rows: readonly Row[]): TableChange {
    const before = this.rows;
    const changed: Row[] = [];
    this.rows = new Map();
    for (const row of rows) {
      const [key] = row;
      const old = before.get(key);
      const isSame = old !== undefined && isEqual(old, row);
      if (!isSame) changed.push(row);
      this.rows.set(key, isSame ? old : row);
    }
    const gone: string[] = [];
    for (const key of before.keys()) if (!this.rows.has(key)) gone.push(key);
    return { changed, gone };
  }

  /** The whole table, as a change of an empty one. */
  all(): TableChange {
    return { changed: [...this.rows.values()], gone: [] };
  }
}

function isEqual(a: Row, b: Row): boolean {
  if (a.length !== b.length) return false;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false;
  return true;
}
