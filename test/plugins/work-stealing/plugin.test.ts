import { describe, expect, it } from 'vitest';
import { type RawPeer, TestHost, startHost } from '../../kit/test-host.ts';

const FIRST = 'inmemory://w1';
const SECOND = 'inmemory://w2';

const start = (workStealing: object = {}, scheduler: object = {}): Promise<TestHost> =>
  startHost({ workStealing: { mode: 'eager', ...workStealing }, ...scheduler });

/** A worker with a number of tasks, which prefer it, and one that joins when it has them. */
async function loaded(host: TestHost, tasks: number): Promise<RawPeer[]> {
  const first = await host.worker(FIRST);
  const client = await host.client();
  const keys = Array.from({ length: tasks }, (_, index) => `x-${index}`);
  await client.send({
    op: 'update-graph',
    keys,
    tasks: keys.map((key) => {
      return { key, dependencies: [], runSpec: key, workers: [FIRST], allowOtherWorkers: true };
    }),
  });
  return [first, await host.worker(SECOND)];
}

const requests = (worker: RawPeer | undefined): string[] =>
  (worker?.received ?? [])
    .filter(({ op }) => op === 'steal-request')
    .flatMap(({ keys }) => keys as string[]);

const counts = (host: TestHost): number[] =>
  [...host.scheduler.cluster.workers.values()].map(({ processing }) => processing.size);

describe('work stealing in a scheduler', () => {
  it('is on, and steals every 100 ms for a worker that has joined', async () => {
    const host = await start();
    const [first] = await loaded(host, 20);
    expect(requests(first)).toEqual([]);
    await host.clock.advanceAsync(100);
    expect(requests(first)).toHaveLength(5);
    expect(host.scheduler.cluster.stealsInFlight).toBe(5);
  });

  it('gives what the victim gives up to the thief', async () => {
    const host = await start();
    const [first, second] = await loaded(host, 20);
    await host.clock.advanceAsync(100);
    const request = first?.received.find(({ op }) => op === 'steal-request');
    const { keys, runIds } = request as unknown as { keys: string[]; runIds: number[] };
    const states = keys.map((_, index) => (index === 0 ? 'executing' : 'ready'));
    await first?.send({ op: 'steal-response', keys, runIds, states });
    expect(counts(host)).toEqual([16, 4]);
    const sent = second?.received.filter(({ op }) => op === 'compute-task');
    expect(sent?.map(({ key }) => key)).toEqual(keys.slice(1));
    expect(host.scheduler.command('events', { topic: 'stealing' })).toMatchObject([
      { message: { action: 'asked', count: 5 } },
      { message: { action: 'answered', worker: FIRST, refused: [keys[0]], moved: keys.slice(1) } },
    ]);
    expect(host.scheduler.story(keys[1]!).at(-1)).toMatchObject({
      start: 'processing',
      finish: 'processing',
    });
  });

  it('refuses an answer without its parts, and the connection with it', async () => {
    const host = await start();
    const [first] = await loaded(host, 20);
    await first?.send({ op: 'steal-response', keys: ['x-1'] });
    expect(first?.closedWith).toBeDefined();
  });

  it('does nothing by itself when start is false, and a round on request', async () => {
    const host = await start({ start: false });
    const [first] = await loaded(host, 20);
    await host.clock.advanceAsync(10_000);
    expect(requests(first)).toEqual([]);
    expect(host.scheduler.command('work-stealing.running')).toBe(false);
    expect(host.scheduler.command('work-stealing.runOnce')).toEqual({ asked: 5 });
    expect(host.scheduler.command('work-stealing.metrics')).toMatchObject({
      rounds: 1,
      inFlight: 5,
    });
  });

  it('starts and stops by command, at its interval', async () => {
    const host = await start({ start: false, interval: '1s' });
    const [first] = await loaded(host, 20);
    expect(host.scheduler.command('work-stealing.start')).toBe(true);
    expect(host.scheduler.command('work-stealing.stop')).toBe(false);
    await host.clock.advanceAsync(5_000);
    expect(requests(first)).toEqual([]);
    host.scheduler.command('work-stealing.start');
    host.scheduler.command('work-stealing.start');
    await host.clock.advanceAsync(1_000);
    expect(host.scheduler.command('work-stealing.metrics')).toMatchObject({ rounds: 1 });
    expect(requests(first)).toHaveLength(5);
  });

  it('is calm when it is configured to be: one task for a thread that has none', async () => {
    const host = await start({ mode: 'calm', horizon: 0 });
    const [first] = await loaded(host, 20);
    await host.clock.advanceAsync(100);
    expect(requests(first)).toHaveLength(1);
  });

  it('takes options where a configuration lists it as a plugin', async () => {
    const config = { scheduler: { workStealing: { horizon: 'soon' } } };
    await expect(TestHost.start({ config })).rejects.toThrow(
      'scheduler.workStealing.horizon must be a time',
    );
  });

  it('lets other things happen between the slices of a large round', async () => {
    const host = await start({}, { validate: false });
    const [first, second] = await loaded(host, 9_000);
    await host.clock.advanceAsync(100);
    const asked = requests(first).length;
    expect(asked).toBeGreaterThan(1000);
    const { slices, rounds } = host.scheduler.command('work-stealing.metrics') as {
      slices: number;
      rounds: number;
    };
    expect([rounds, slices > 3]).toEqual([1, true]);
    const messages = first?.received.filter(({ op }) => op === 'steal-request') ?? [];
    expect(messages.length).toBeGreaterThan(2);
    expect(second?.received).toEqual([]);
  });

  it('ends with the scheduler in the middle of a round', async () => {
    const host = await start({}, { validate: false });
    await loaded(host, 9_000);
    const ending = host.close();
    await host.clock.advanceAsync(1_000);
    await ending;
    expect(host.clock.timerCount).toBe(0);
  });
});
