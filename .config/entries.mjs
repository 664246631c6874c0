/** The entries of the package that have code, with the name of each and its source, without an ending. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { exports } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));

export const ENTRIES = Object.keys(exports)
  .filter((path) => typeof exports[path] === 'object')
  .map((path) =>
    path === '.'
      ? { name: 'index', source: 'adapters/app/index' }
      : {
          name: path.slice('./'.length),
          source: `adapters/app/entries/${path.slice('./'.length)}`,
        },
  );
