import { describe, expect, it } from 'vitest';

import {
  DEFAULT_MEMORY_THRESHOLDS,
  MemoryGovernor,
  type MemorySample,
  type MemoryThresholds,
  type MemoryVerdict,
} from '../../../../core/worker/memory.ts';

/** A worker with a limit of 1000 bytes, looked at every 100 ms. */
class Watch {
  nowMs = 0;
  private readonly governor: MemoryGovernor;

  constructor(thresholds: Partial<MemoryThresholds> = {}) {
    this.governor = new MemoryGovernor(1000, { ...DEFAULT_MEMORY_THRESHOLDS, ...thresholds });
  }

  /** A collection is answered at once, as if it took 5 ms. */
  look(processBytes: number, more: Partial<MemorySample> = {}): MemoryVerdict {
    this.nowMs += 100;
    const verdict = this.governor.decide({
      nowMs: this.nowMs,
      processBytes,
      garbageBytes: 0,
      ramBytes: 500,
      canSpill: true,
      isIdle: false,
      ...more,
    });
    if (verdict.collect) this.governor.noteCollection(this.nowMs, 5);
    return verdict;
  }

  modes(amounts: readonly number[], more: Partial<MemorySample> = {}): string[] {
    return amounts.map((amount) => this.look(amount, more).mode);
  }
}

describe('spilling', () => {
  it('below the threshold nothing is done', () => {
    const idle = {
      spillBytes: 0,
      mode: 'running',
      collect: false,
      terminate: false,
      isBlockedByDisk: false,
    };
    expect(new Watch().look(700)).toEqual(idle);
  });

  it('beyond it garbage is collected, and what is too much after that is spilled', () => {
    const watch = new Watch();
    expect(watch.look(750)).toMatchObject({ spillBytes: 0, collect: true });
    expect(watch.look(720)).toMatchObject({ spillBytes: 120, collect: true });
  });

  it('when the collection was enough nothing is spilled', () => {
    const watch = new Watch();
    watch.look(750);
    expect(watch.look(600)).toMatchObject({ spillBytes: 0, collect: false });
  });

  it('continues until it is below the target, each time after a collection', () => {
    const watch = new Watch();
    const amounts = [750, 750, 740, 690, 610, 600, 690].map(
      (bytes) => watch.look(bytes).spillBytes,
    );
    expect(amounts).toEqual([0, 150, 140, 90, 10, 0, 0]);
  });

  it('no more is asked for than there is in memory, and nothing that cannot be spilled', () => {
    const watch = new Watch();
    watch.look(790);
    expect(watch.look(790, { canSpill: false }).spillBytes).toBe(0);
    expect(watch.look(790, { ramBytes: 40 }).spillBytes).toBe(40);
  });

  it('without a target it goes back to the threshold; without a threshold nothing is spilled', () => {
    const noTarget = new Watch({ target: 0 });
    noTarget.look(750);
    expect(noTarget.look(750).spillBytes).toBe(50);
    const noSpill = new Watch({ spill: 0 });
    noSpill.look(790);
    expect(noSpill.look(790).spillBytes).toBe(0);
  });
});

describe('a worker that results fill which cannot be spilled', () => {
  const fills = { canSpill: false, isSpillFailing: true, ramBytes: 900, isIdle: true };

  it('pauses instead of closing, for as long as the disk takes nothing', () => {
    const watch = new Watch();
    const verdicts = Array.from({ length: 100 }, () => watch.look(980, fills));
    expect(verdicts.some(({ terminate }) => terminate)).toBe(false);
    expect(new Set(verdicts.map(({ mode }) => mode))).toEqual(new Set(['paused']));
    expect(watch.look(980, fills).isBlockedByDisk).toBe(true);
    expect(watch.modes([700, 700], fills)).toEqual(['running', 'running']);
  });

  it('closes all the same when something else than results fills it', () => {
    const watch = new Watch();
    const looks = Array.from({ length: 100 }, () => watch.look(980, { ...fills, ramBytes: 10 }));
    expect(looks.some(({ terminate }) => terminate)).toBe(true);
  });
});

describe('pausing', () => {
  it('a worker pauses when a collection did not help, and resumes clearly below', () => {
    expect(new Watch().modes([810, 810, 790, 761, 760, 790, 801])).toEqual([
      'running',
      'paused',
      'paused',
      'paused',
      'running',
      'running',
      'running', // Garbage first, again.
    ]);
  });

  it('garbage alone does not pause it', () => {
    expect(new Watch().modes([900, 500, 500, 500, 900, 500])).not.toContain('paused');
  });

  it('without that threshold it never pauses', () => {
    expect(new Watch({ pause: 0 }).modes([900, 900, 900])).not.toContain('paused');
  });

  it('a worker that cannot free memory resumes after two seconds, one task at a time', () => {
    const watch = new Watch();
    watch.modes([900, 900]);
    const stuck = { isIdle: true, ramBytes: 0 };
    const modes = watch.modes(Array<number>(25).fill(900), stuck);
    expect(modes.indexOf('crawling')).toBe(20);
    expect(watch.modes([900, 790, 760], { ramBytes: 10 })).toEqual([
      'crawling',
      'crawling',
      'running',
    ]);
  });

  it('that time begins anew whenever something runs or could be spilled', () => {
    const watch = new Watch();
    watch.modes([900, 900]);
    const stuck = { isIdle: true, ramBytes: 0 };
    watch.modes(Array<number>(19).fill(900), stuck);
    watch.look(900, { isIdle: false, ramBytes: 0 });
    watch.modes(Array<number>(19).fill(900), stuck);
    watch.look(900, { isIdle: true, ramBytes: 10 });
    expect(watch.modes(Array<number>(20).fill(900), stuck)).not.toContain('crawling');
    expect(watch.look(900, stuck).mode).toBe('crawling');
  });

  it('results that the disk does not take are no way out', () => {
    const watch = new Watch();
    watch.modes([900, 900]);
    const full = { isIdle: true, canSpill: false };
    expect(watch.modes(Array<number>(21).fill(900), full).at(-1)).toBe('crawling');
  });
});

describe('giving up', () => {
  const beyond = (watch: Watch, looks: number): boolean[] =>
    Array.from({ length: looks }, () => watch.look(960).terminate);

  it('comes after two seconds in which no collection has helped', () => {
    expect(beyond(new Watch(), 21).indexOf(true)).toBe(20);
  });

  it('does not come when one has helped, and the time begins anew', () => {
    const watch = new Watch();
    expect(beyond(watch, 20)).not.toContain(true);
    watch.look(900);
    expect(beyond(watch, 20)).not.toContain(true);
    expect(watch.look(960).terminate).toBe(true);
  });

  it('does not come without that threshold', () => {
    expect(beyond(new Watch({ terminate: 0 }), 50)).not.toContain(true);
  });
});

it('results that left memory are collected before they are too much', () => {
  const watch = new Watch();
  expect(watch.look(300, { garbageBytes: 49 }).collect).toBe(false);
  expect(watch.look(300, { garbageBytes: 50 }).collect).toBe(true);
});

it.each([
  ['a tenth of the time', 500, 1000],
  ['a quarter of it by a worker that spills', 720, 300],
  ['half of it by one that is full', 900, 100],
])('garbage is collected at most %s', (_, processBytes, intervalMs) => {
  const governor = new MemoryGovernor(1000, DEFAULT_MEMORY_THRESHOLDS);
  const collections: number[] = [];
  for (let nowMs = 0; nowMs < 2500; nowMs += 100) {
    const sample = { nowMs, processBytes, garbageBytes: 50, ramBytes: 0, canSpill: true };
    if (!governor.decide({ ...sample, isIdle: false }).collect) continue;
    governor.noteCollection(nowMs, 100);
    collections.push(nowMs);
  }
  const expected = [0, 1, 2].map((index) => index * intervalMs);
  expect(collections.slice(0, 3)).toEqual(expected);
});

it('a worker does not give up before what it collected could be given back, however long that takes', () => {
  const governor = new MemoryGovernor(1000, DEFAULT_MEMORY_THRESHOLDS);
  let nowMs = 0;
  let collections = 0;
  for (;;) {
    const sample = { nowMs, processBytes: 960, garbageBytes: 0, ramBytes: 0, canSpill: true };
    const { terminate, collect } = governor.decide({ ...sample, isIdle: true });
    if (terminate) break;
    if (collect) collections++;
    nowMs += collect ? 3000 : 100; // A machine that has other things to do.
    if (collect) governor.noteCollection(nowMs, 3000);
  }
  expect(collections).toBe(3);
});
