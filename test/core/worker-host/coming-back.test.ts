import { describe, expect, it } from 'vitest';
import { deserialise } from '../../../adapters/tasks/index.ts';
import type { GetDataReply, WireMessage } from '../../../core/api/index.ts';
import type { HostedWorker } from '../../../core/worker-host/create-worker.ts';
import { Bench, Ref, SCHEDULER } from '../worker/hand-scheduler.ts';

const bench = (delayMs = 0): Promise<Bench> => new Bench(delayMs).listen();
const ops = (reports: readonly WireMessage[]): unknown[] => reports.map(({ op }) => op);

function start(world: Bench, timeoutMs = 60_000): Promise<HostedWorker> {
  return world.startWorker('alice', { onSchedulerLost: 'reconnect', reconnect: { timeoutMs } });
}

/** Keys that a peer can have of the worker. */
async function held(world: Bench, worker: HostedWorker, ...keys: string[]): Promise<unknown> {
  const peer = await world.peer(worker);
  const reply = await world.settle(peer.request<GetDataReply>('get-data', { keys }));
  return Object.fromEntries(
    reply.keys.map((key, index) => [key, deserialise(reply.values[index]!)]),
  );
}

function registrations(world: Bench): WireMessage[] {
  return world.requests.filter(({ method }) => method === 'register-worker');
}

describe('a worker that reconnects', () => {
  it('registers again when the scheduler is back, under the same address and name', async () => {
    const world = await bench(2);
    const worker = await start(world);
    await world.goDown();
    await world.pass(3000);
    expect(registrations(world)).toHaveLength(1);
    await world.listen();
    await world.pass(5000);
    const [first, second, third] = registrations(world);
    expect(second!['identity']).toEqual(first!['identity']);
    expect(third).toBeUndefined();
    world.take(worker);
    const [finished] = await world.send(worker, world.compute('x', 'add', [1, 2]));
    await world.pass(10);
    expect(finished ?? world.take(worker)[0]).toMatchObject({ op: 'task-finished', key: 'x' });
    expect(world.logged).toContain('the worker is back with its scheduler');
  });

  it('keeps its results, and reports them to the same scheduler', async () => {
    const world = await bench();
    const worker = await start(world);
    const message = world.compute('x', 'add', [1, 2]);
    await world.send(worker, message);
    await world.goDown();
    await world.pass(500);
    expect(await held(world, worker, 'x')).toEqual({ x: 3 });
    await world.listen();
    await world.pass(2000);
    expect(registrations(world)[1]).toMatchObject({
      held: {
        keys: ['x'],
        runIds: [(message as { runId: number }).runId],
        nbytes: [expect.any(Number)],
        types: ['number'],
      },
    });
    expect(await held(world, worker, 'x')).toEqual({ x: 3 });
    const freed = await world.send(worker, { op: 'free-keys', keys: ['x'], stimulusId: 'f' });
    expect(ops(freed)).toContain('release-worker-data');
  });

  it('drops everything when another scheduler has come, which may mean other tasks by the same keys', async () => {
    const world = await bench();
    const worker = await start(world);
    await world.send(worker, world.compute('x', 'add', [1, 2]));
    await world.goDown();
    world.serverId = 'another';
    await world.listen();
    await world.pass(2000);
    expect(registrations(world)[1]).not.toHaveProperty('held');
    expect(await held(world, worker, 'x')).toEqual({});
    world.take(worker);
    const [finished] = await world.send(worker, world.compute('x', 'add', [5, 6]));
    expect(finished).toMatchObject({ op: 'task-finished', key: 'x' });
    expect(await held(world, worker, 'x')).toEqual({ x: 11 });
  });

  it('gives up what it was asked for: runs are aborted, what waits is forgotten, copies go', async () => {
    const world = await bench();
    const alice = await start(world);
    const bob = await world.startWorker('bob', { onSchedulerLost: 'reconnect' });
    await world.send(bob, world.compute('b', 'add', [1, 1]));
    await world.send(
      alice,
      world.compute('run', 'waitForAbort', []),
      world.compute('sum', 'total', [[new Ref('b')]], { b: [bob.address] }),
      world.compute('later', 'total', [[new Ref('nowhere')]], { nowhere: [] }),
    );
    await world.pass(20);
    expect(await held(world, alice, 'b', 'sum')).toEqual({ b: 2, sum: 2 });
    await world.goDown();
    await world.pass(20);
    expect(await held(world, alice, 'b', 'sum')).toEqual({ sum: 2 });
    await world.listen();
    await world.pass(5000);
    const back = registrations(world).filter((request) => 'held' in request);
    expect(back.map(({ held: it }) => (it as { keys: string[] }).keys).sort()).toEqual([
      ['b'],
      ['sum'],
    ]);
    world.take(alice);
    await world.pass(500);
    const [beat] = world.take(alice);
    expect(beat).toMatchObject({ op: 'heartbeat-worker', executing: [] });
  });

  it('waits for a scheduler that closes in good order', async () => {
    const world = await bench();
    const worker = await start(world);
    const { channel } = world.workers.get('alice')!;
    channel.send({ op: 'close', reason: 'scheduler-close', stimulusId: 'c' });
    await world.pass(5);
    await world.settle(channel.close());
    await world.pass(5000);
    expect(registrations(world)).toHaveLength(2);
    await world.settle(worker.close());
  });

  it('is refused for as long as its old connection stands, and tries again', async () => {
    const world = await bench();
    const worker = await start(world);
    const error = new Error('there is a worker with that name') as never;
    await world.goDown();
    world.refuse = error;
    await world.listen();
    await world.pass(1000);
    expect(registrations(world).length).toBeGreaterThan(2);
    world.refuse = undefined;
    await world.pass(5000);
    world.take(worker);
    await world.pass(600);
    expect(ops(world.take(worker))).toContain('heartbeat-worker');
  });

  it('tries less and less often, closes when its time is over, and says so', async () => {
    const world = await bench();
    const worker = await start(world, 20_000);
    await world.goDown();
    const fromMs = world.clock.nowMs();
    await world.pass(20_100);
    const { error, reason } = await world.settle(worker.finished);
    expect(error).toMatchObject({ code: 'ERR_CLOSED', data: { scheduler: SCHEDULER } });
    expect(reason).toMatch(
      /closed the connection: .*crash, and it was not back within 20 s \(\d+ attempts; the last: .*no listener is there/,
    );
    expect(world.clock.nowMs() - fromMs).toBeLessThan(21_000);
    await world.pass(20_000);
    expect(world.clock.timerCount).toBe(0);
  });

  it('can be closed while it tries', async () => {
    const world = await bench(2);
    const worker = await start(world, Infinity);
    await world.goDown();
    await world.pass(1000);
    await world.settle(worker.close());
    expect(await worker.finished).toEqual({ reason: 'asked to close' });
    await world.listen();
    await world.pass(60_000);
    expect(registrations(world)).toHaveLength(1);
    expect(world.clock.timerCount).toBe(0);
  });

  it('that is closed during an attempt leaves no connection behind', async () => {
    const world = await bench(50);
    const worker = await start(world, Infinity);
    await world.goDown();
    await world.listen();
    await world.pass(160); // The first attempt is on its way.
    const closing = worker.close();
    await world.pass(10_000);
    await closing;
    expect(world.clock.timerCount).toBe(0);
  });

  it('survives a scheduler that dies again and again while it registers', async () => {
    const world = await bench(10);
    const worker = await start(world);
    for (let round = 0; round < 5; round++) {
      await world.goDown();
      await world.listen();
      // Each time at another moment of the conversation.
      await world.pass(105 + 15 * round);
    }
    await world.pass(10_000);
    world.take(worker);
    const [finished] = await world.send(worker, world.compute('x', 'add', [1, 2]));
    await world.pass(50);
    expect(ops([finished, ...world.take(worker)].filter((it) => it !== undefined))).toContain(
      'task-finished',
    );
    expect(registrations(world).length).toBeLessThan(10);
  });

  it('does not come back to a scheduler of another version', async () => {
    const world = await bench();
    const worker = await start(world);
    await world.goDown();
    world.protocol = 'yardmaster/99';
    await world.listen();
    await world.pass(1000);
    const { error } = await world.settle(worker.finished);
    expect(error!.message).toContain('yardmaster/99');
  });
});
