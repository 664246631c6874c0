import { ESLint, Linter } from 'eslint';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './source-files.ts';

const eslint = new ESLint({
  cwd: ROOT,
  overrideConfigFile: join(ROOT, '.config/eslint.config.js'),
});

const RULES = ['no-restricted-globals', 'no-restricted-properties'] as const;

/** What the linter says about such a line in such a file, as far as these rules go. */
async function messagesFor(path: string, code: string): Promise<string[]> {
  const config = (await eslint.calculateConfigForFile(join(ROOT, path))) as {
    rules: Linter.RulesRecord;
  };
  const rules = Object.fromEntries(RULES.map((rule) => [rule, config.rules[rule] ?? 'off']));
  const languageOptions = { globals: { Date: false, process: false, fetch: false } };
  return new Linter()
    .verify(code, { rules, languageOptions })
    .map(({ ruleId }) => ruleId ?? 'broken');
}

const FOLDERS = ['core/kernel', 'core/worker', 'core/state', 'core/messages', 'core/util'];

const EFFECTS = [
  ['a clock', 'Date.now();', RULES[0]],
  ['a precise clock', 'performance.now();', RULES[0]],
  ['a timer', 'setTimeout(() => {}, 1);', RULES[0]],
  ['a repeated timer', 'setInterval(() => {}, 1);', RULES[0]],
  ['a deferred call', 'setImmediate(() => {});', RULES[0]],
  ['a microtask', 'queueMicrotask(() => {});', RULES[0]],
  ['the process', 'process.exit();', RULES[0]],
  ['the console', 'console.log(1);', RULES[0]],
  ['the network', 'fetch("x");', RULES[0]],
  ['chance', 'Math.random();', RULES[1]],
] as const;

describe.each(FOLDERS)('in %s', (folder) => {
  it.each(EFFECTS)('%s is refused', async (_what, code, rule) => {
    expect(await messagesFor(`${folder}/planted.ts`, code)).toEqual([rule]);
  });

  it('arithmetic is not', async () => {
    expect(await messagesFor(`${folder}/planted.ts`, 'Math.max(1, 2);')).toEqual([]);
  });
});

it('adapters may look at the clock', async () => {
  expect(await messagesFor('adapters/clock/planted.ts', 'Date.now();')).toEqual([]);
});
