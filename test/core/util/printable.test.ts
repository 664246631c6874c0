import { expect, it } from 'vitest';

import { printable, printableLines } from '../../../core/util/values.ts';
import { textLogger } from '../../../adapters/app/text-log.ts';

it('a name of a peer cannot colour a terminal, nor forge a line of a log', () => {
  const lines: string[] = [];
  const log = textLogger('scheduler', 'warn', (line) => lines.push(line));
  log.warn({}, 'the worker "\u001B[31mroot\r\nyardmaster scheduler error: pay" left \u202Egnp');
  expect(lines).toEqual([
    'yardmaster scheduler warning: the worker "\\u001b[31mroot\\u000d\n    yardmaster scheduler error: pay" left \\u202egnp\n',
  ]);
});

it('ordinary text, with its indented lines, stays as it is', () => {
  const text = 'Grüße, 世界\n  - a\tb\n  - c';
  expect(printable(text)).toBe(text);
  expect(printableLines('a\nb\u0007')).toBe('a\nb\\u0007');
});
