import { expect, it } from 'vitest';
import { TRANSITIONS } from '../../core/kernel/transitions/transition-table.ts';
import { TASK_STATE_NAMES } from '../../core/state/task-state-name.ts';
import { filesIn } from './source-files.ts';

const rows = TASK_STATE_NAMES.flatMap((start) => {
  return Object.entries(TRANSITIONS[start]).map(([finish, step]) => ({ start, finish, step }));
});

/** `no-worker` → `noWorker`. */
function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

it.each(rows)('$start -> $finish is a function of that name', ({ start, finish, step }) => {
  expect(step.name).toBe(`${camel(start)}To${capital(camel(finish))}`);
});

it('every transition is written in the file of its start', () => {
  const texts = new Map(filesIn('core/kernel', '.ts').map(({ path, text }) => [path, text]));
  for (const { start, step } of rows) {
    const text = texts.get(`core/kernel/transitions/from-${start}.ts`);
    expect(text, `from-${start}.ts`).toContain(`export function ${step.name}(`);
  }
});

it('every transition function is in the table', () => {
  const named = filesIn('core/kernel', '.ts').flatMap(({ text }) => {
    return [...text.matchAll(/export function (\w+To[A-Z]\w+)\(/g)].map(([, name]) => name);
  });
  const inTable = rows.map(({ step }) => step.name);
  expect(
    named
      .filter((name) =>
        /^(released|waiting|noWorker|queued|processing|memory|erred)To/.test(name ?? ''),
      )
      .toSorted(),
  ).toEqual(inTable.toSorted());
});
