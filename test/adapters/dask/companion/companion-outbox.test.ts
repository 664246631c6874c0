import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../adapters/clocks/index.ts';
import { Outbox } from '../../../../adapters/dask/companion.ts';
import type { YardmasterError } from '../../../../core/api/index.ts';

type Message = Readonly<Record<string, unknown>>;

const LIMITS = { window: 4, holdAt: 10, max: 40, stallMs: 1000 };

let clock: VirtualClock;
let sent: Message[];
let held: boolean[];
let reasons: YardmasterError[];
let outbox: Outbox;

beforeEach(() => {
  clock = new VirtualClock();
  sent = [];
  held = [];
  reasons = [];
  outbox = new Outbox(
    {
      clock,
      send: (message) => sent.push(message),
      holdPeers: (isHeld) => held.push(isHeld),
      giveUp: (reason) => reasons.push(reason),
    },
    LIMITS,
  );
});

function add(count: number, from = 0): void {
  for (let index = 0; index < count; index++) outbox.addEvent(['transition', from + index]);
}

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function events(): unknown[] {
  return sent.flatMap(({ events: list }) => (list as unknown[] | undefined) ?? []);
}

describe('events for plugins in Python', () => {
  it('those of one turn of the event loop travel in one message', async () => {
    add(3);
    expect(sent).toEqual([]);
    await endOfTurn();
    expect(sent).toEqual([
      {
        op: 'events',
        events: [
          ['transition', 0],
          ['transition', 1],
          ['transition', 2],
        ],
      },
    ]);
  });

  it('no more than the window are in the process; the others follow when these are handled', async () => {
    add(9);
    await endOfTurn();
    expect(events()).toHaveLength(4);
    outbox.handled(4);
    expect(events()).toHaveLength(8);
    outbox.handled(4);
    expect(events().map((event) => (event as unknown[])[1])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(outbox.waiting).toBe(0);
  });

  it('a request overtakes no event that was there before it, and waits for no later one', () => {
    add(6);
    outbox.addRequest({ op: 'run', id: 1 });
    expect(sent.map(({ op }) => op)).toEqual(['events']);
    outbox.handled(4);
    expect(sent.map(({ op }) => op)).toEqual(['events', 'events', 'run']);
  });

  it('peers are held while too many events wait, and resume when half of them are handled', async () => {
    add(15);
    expect(held).toEqual([true]);
    await endOfTurn();
    outbox.handled(4);
    expect(outbox.waiting).toBe(7);
    expect(held).toEqual([true]);
    outbox.handled(4);
    expect(held).toEqual([true, false]);
    clock.advance(10 * LIMITS.stallMs);
    expect(reasons).toEqual([]);
  });

  it('a process that handles nothing while peers are held is given up', () => {
    add(15);
    clock.advance(LIMITS.stallMs - 1);
    outbox.handled(1);
    clock.advance(LIMITS.stallMs - 1);
    expect(reasons).toEqual([]);
    clock.advance(1);
    expect(reasons.map(({ code }) => code)).toEqual(['ERR_TIMEOUT']);
  });

  it('a process is given up when events come that cannot be held', () => {
    add(LIMITS.max);
    expect(reasons[0]).toMatchObject({ code: 'ERR_TIMEOUT', data: { waiting: LIMITS.max } });
  });

  it('peers resume when the process has ended', () => {
    add(15);
    outbox.close();
    expect(held).toEqual([true, false]);
    add(100);
    expect(outbox.waiting).toBe(0);
  });
});
