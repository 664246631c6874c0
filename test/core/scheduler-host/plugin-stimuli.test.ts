import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { definePlugin, type NewStimulus } from '../../../core/api/index.ts';
import { TestHost } from '../../kit/test-host.ts';

/** A scheduler with a plugin that enqueues the stimuli of a test. */
async function withPlugin(): Promise<{ host: TestHost; say: (stimulus: unknown) => void }> {
  const host = await TestHost.start();
  let say: (stimulus: unknown) => void = () => undefined;
  const speaker = definePlugin({
    name: 'speaker',
    apiVersion: 1,
    setup: (context) => {
      say = (stimulus) => context.enqueue(stimulus as NewStimulus);
    },
  });
  await host.scheduler.addPlugin(speaker);
  return { host, say: (stimulus) => say(stimulus) };
}

const SCHEMAS = new URL('../../../core/messages/messages.schema.json', import.meta.url);
const { definitions } = JSON.parse(readFileSync(SCHEMAS, 'utf8')) as {
  definitions: Record<string, { properties: Record<string, unknown> }>;
};
const OPS = Object.keys(definitions)
  .filter((name) => name.startsWith('stimulus '))
  .map((name) => name.slice('stimulus '.length));

/** Fields of a stimulus, and of the message of which it is made. */
function fieldsOf(op: string): string[] {
  const names = [`stimulus ${op}`, `worker message ${op}`, `client message ${op}`];
  return names.flatMap((name) => Object.keys(definitions[name]?.properties ?? {}));
}

const GARBAGE = [null, -1, Number.NaN, 'text', {}, [null], [{}], [['a']]];

it('a stimulus with an unknown op is the failure of its plugin, and says what is meant', async () => {
  const { host, say } = await withPlugin();
  say({ op: 'stealTasks', proposals: [] });
  const [speaker] = host.scheduler.plugins.filter(({ name }) => name === 'speaker');
  expect(speaker).toMatchObject({ errorCount: 1, enabled: true });
  expect(host.log.messages.at(-1)).toMatch(
    /plugin "speaker".*"stealTasks" is not a stimulus; did you mean "steal-tasks"\?/,
  );
  expect(host.scheduler.crash).toBeUndefined();
  await host.close();
});

it.each(OPS)('no form of the stimulus %s ends the scheduler', async (op) => {
  const { host, say } = await withPlugin();
  const fields = fieldsOf(op).filter((field) => field !== 'op');
  say({ op });
  for (const garbage of GARBAGE) {
    for (const field of [...fields, 'worker', 'client']) {
      say({ op, worker: 'tcp://w1:1', client: 'c', keys: ['a'], key: 'a', [field]: garbage });
    }
    const all = fields.map((field) => [field, garbage]);
    say({ op, worker: 'w', client: 'c', ...Object.fromEntries(all) });
  }
  await host.settle();
  expect(host.scheduler.crash).toBeUndefined();
  expect(host.scheduler.cluster.tasks.size).toBe(0);
  await host.close();
});

it.each([undefined, null, 'text', {}, { op: 1 }, { op: 'graph-part', tasks: [], keys: [] }])(
  'what is no stimulus, such as %j, is refused',
  async (stimulus) => {
    const { host, say } = await withPlugin();
    say(stimulus);
    expect(() => host.scheduler.enqueue(stimulus as never)).toThrow(
      expect.objectContaining({ code: 'ERR_PROTOCOL' }) as Error,
    );
    expect(host.scheduler.crash).toBeUndefined();
    await host.close();
  },
);
