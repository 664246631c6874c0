import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERROR_CODES } from '../../../core/api/index.ts';

it('docs/troubleshooting.md has an item for each code, in order, and for nothing else', () => {
  const text = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8');
  const [, codes = ''] = text.split('\n## Error codes\n');
  const rows = [...codes.matchAll(/^- `(ERR_\w+)`: (.+)$/gm)];
  expect(rows.map(([, code]) => code)).toEqual(Object.keys(ERROR_CODES));
});
