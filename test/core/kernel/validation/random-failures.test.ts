import fc from 'fast-check';
import { it } from 'vitest';
import { check } from '../../../kit/check.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { effort } from '../../../kit/effort.ts';
import type { TerseGraph } from '../../../kit/graph.ts';

/** Clients are told about failures, whatever fails, starts again, becomes data or is given up, in whichever order. */
const CLIENTS = ['c', 'd', 'e'];
const KEYS = 'a b c d e f'.split(' ');

/** What may happen; more frequent things stand here more often. */
const ACTS = [
  ...['fail', 'fail', 'fail', 'fail', 'finish', 'retry', 'retry', 'scatter', 'scatter'],
  ...['submit', 'submit', 'release', 'cancel', 'leave', 'lose', 'die', 'settle', 'report'],
] as const;

interface Act {
  readonly what: (typeof ACTS)[number];
  /** Selects a task. */
  readonly which: number;
  /** Decides what is left to decide. */
  readonly seed: number;
}

interface Scene {
  /** Bits of dependencies on earlier keys, by key. */
  readonly dependencies: readonly number[];
  readonly sliceTransitions: number;
  readonly acts: readonly Act[];
}

const scenes: fc.Arbitrary<Scene> = fc.record({
  dependencies: fc.tuple(...KEYS.map((_, place) => fc.nat(2 ** place - 1))),
  sliceTransitions: fc.constantFrom(Infinity, Infinity, 1, 3),
  acts: fc.array(
    fc.record({ what: fc.constantFrom(...ACTS), which: fc.nat(60), seed: fc.nat(99) }),
    { maxLength: 40, size: 'max' },
  ),
});

it('every failure that clients are told of has its cause, and all that is retried is done in the end', () => {
  fc.assert(fc.property(scenes, play), effort(100));
});

/** The kernel checks its invariants after every stimulus. */
function play({ dependencies, sliceTransitions, acts }: Scene): void {
  const env = new SchedulerEnv({ kernel: { sliceTransitions } });
  env.addWorkers(2, { threads: 3 });
  const graph: TerseGraph = Object.fromEntries(
    KEYS.map((key, place) => {
      const bits = dependencies[place] as number;
      return [key, KEYS.slice(0, place).filter((_, bit) => (bits & (1 << bit)) !== 0)];
    }),
  );
  for (const client of CLIENTS) env.client(client);
  env.submit(graph, { keys: KEYS });
  for (const act of acts) perform(env, graph, act);
  for (let left = 10; left > 0; left--) {
    settle(env);
    env.addWorkers(2, { threads: 3 });
    env.submit(graph, { client: 'd', keys: KEYS });
    env.retry(...KEYS);
    settle(env);
    for (const key of KEYS) if (env.state(key) === 'processing') env.finish(key);
  }
  const states = env.states;
  for (const key of KEYS) check(env.state(key) === 'memory', () => JSON.stringify(states));
}

function perform(env: SchedulerEnv, graph: TerseGraph, { what, which, seed: rest }: Act): void {
  const key = KEYS[which % KEYS.length] as string;
  const client = CLIENTS[rest % CLIENTS.length] as string;
  const keys = KEYS.filter((_, bit) => (which & (1 << bit)) !== 0);
  const processing = KEYS.filter((one) => env.state(one) === 'processing');
  const running = processing[which % processing.length];
  switch (what) {
    case 'fail':
      if (running !== undefined) env.fail(running);
      break;
    case 'finish':
      if (running !== undefined) env.finish(running);
      break;
    case 'retry':
      env.send({ op: 'retry', client, keys: [key] });
      break;
    case 'scatter':
      if (env.cluster.workers.size > 0) env.scatter({ [key]: [`w${1 + (rest % 2)}`] }, client);
      break;
    case 'submit':
      env.submit(graph, { client, keys: rest % 2 === 0 ? KEYS : [key] });
      break;
    case 'release':
      env.send({ op: 'client-releases-keys', client, keys });
      break;
    case 'cancel':
      env.cancel([key], { client, force: rest % 2 === 0 });
      settle(env);
      break;
    case 'leave':
      env.send({ op: 'remove-client', client });
      env.client(client);
      break;
    case 'lose': {
      const [holder] = env.cluster.tasks.get(key)?.whoHas.items ?? [];
      if (holder !== undefined) env.releaseWorkerData(holder.name, key);
      break;
    }
    case 'die':
      env.removeWorker(`w${1 + (rest % 2)}`);
      env.addWorkers(2, { threads: 3 });
      break;
    case 'settle':
      settle(env);
      break;
    case 'report':
      env.send({ op: 'report-key', client, key });
      break;
  }
  env.ignoreMessages();
}

function settle(env: SchedulerEnv): void {
  while (env.kernel.isUnsettled) env.send({ op: 'continue' });
}
