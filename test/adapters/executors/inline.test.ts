import { describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import {
  deserialise,
  packArguments,
  serialise,
  type TaskFunction,
} from '../../../adapters/tasks/index.ts';
import type { ExecutionResult } from '../../../core/api/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const functions = tasks as unknown as Record<string, TaskFunction>;
const NEVER = new AbortController().signal;

function run(
  executor: InlineExecutor,
  name: string,
  args: readonly unknown[] = [],
): Promise<ExecutionResult> {
  const { module, version } = functions[name]!;
  const runSpec = { module, name, version, args: packArguments(args, () => undefined).bytes };
  return executor.run({ key: name, runSpec, inputs: new Map() }, NEVER);
}

describe('InlineExecutor', () => {
  it('runs tasks here, and times them with its clock', async () => {
    const clock = new VirtualClock();
    const result = await run(new InlineExecutor({ clock }), 'add', [1, 2]);
    expect(result).toMatchObject({
      kind: 'success',
      startMs: clock.nowMs(),
      stopMs: clock.nowMs(),
    });
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(3);
  });

  it('a failure is a result', async () => {
    const result = await run(new InlineExecutor({ clock: new VirtualClock() }), 'throwRich');
    expect(result).toMatchObject({ kind: 'failure', error: { code: 'ERR_SAVE', name: 'Problem' } });
  });

  it('a task that changes its input does not change the stored one', async () => {
    const executor = new InlineExecutor({ clock: new VirtualClock() });
    const { module, version } = functions['mutate']!;
    const stored = serialise(new Uint8Array(64));
    const before = Buffer.from(stored);
    class Input {}
    const { bytes } = packArguments([new Input()], (value) =>
      value instanceof Input ? 'x' : undefined,
    );
    const runSpec = { module, name: 'mutate', version, args: bytes };
    await executor.run({ key: 'm', runSpec, inputs: new Map([['x', stored]]) }, NEVER);
    expect(stored).toEqual(before);
  });

  it('close fails what runs and what comes later', async () => {
    const executor = new InlineExecutor({ clock: new VirtualClock() });
    const running = run(executor, 'never');
    await executor.close();
    const closed = { kind: 'failure', error: { code: 'ERR_CLOSED' } };
    expect(await running).toMatchObject(closed);
    expect(await run(executor, 'add', [1, 1])).toMatchObject(closed);
  });
});
