import { expect, it } from 'vitest';
import { TRANSITIONS } from '../../core/kernel/transitions.ts';
import { TASK_STATE_NAMES } from '../../core/state/state-names.ts';
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

it('every transition function is in the table', () => {
  const named = filesIn('core/kernel', '.ts').flatMap(({ text }) => {
    return [...text.matchAll(/^(?:export )?function (\w+To[A-Z]\w+)\(/gm)].map(([, name]) => name);
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
