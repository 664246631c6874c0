import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import {
  Nanny,
  type NannyOptions,
  RESTART_RULES,
  restartDelayMs,
} from '../../../adapters/nanny/index.ts';
import type { Logger } from '../../../core/api/index.ts';

const PROGRAM = fileURLToPath(new URL('./fixtures/program.mjs', import.meta.url));
const started = new Set<Nanny>();
afterEach(async () => {
  await Promise.all([...started].map((nanny) => nanny.close(0)));
  started.clear();
});

interface Watched {
  readonly nanny: Nanny;
  readonly lines: string[];
  /** Resolves when the worker has registered so often in all. */
  registrations(count: number): Promise<void>;
}

/** A nanny of a small program. */
function look(what: string, options: Partial<NannyOptions> = {}): Watched {
  const lines: string[] = [];
  const keep = (level: string) => (_fields: object, message?: string) =>
    void lines.push(`${level} ${message ?? ''}`);
  const log: Logger = {
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
  };
  let count = 0;
  let wake: () => void = () => undefined;
  const nanny = new Nanny({
    name: 'w',
    settings: { what },
    stuckAfterMs: 30_000,
    retireMs: 10_000,
    program: PROGRAM,
    clock: new SystemClock(),
    log,
    onStderr: () => undefined,
    onRegistered: () => {
      count++;
      wake();
    },
    ...options,
  });
  started.add(nanny);
  const registrations = async (wanted: number): Promise<void> => {
    while (count < wanted) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { nanny, lines, registrations };
}

describe('a nanny', () => {
  test('waits twice as long after each early death, up to a limit, and then gives up', () => {
    const delays = Array.from({ length: 11 }, (_, index) =>
      restartDelayMs(RESTART_RULES, index + 1),
    );
    expect(delays).toEqual([
      100,
      200,
      400,
      800,
      1600,
      3200,
      6400,
      12_800,
      25_600,
      30_000,
      undefined,
    ]);
  });

  test('says so when it gives up', async () => {
    const { nanny, lines } = look('die', { rules: { firstDelayMs: 1, attemptsMax: 2 } });
    await nanny.ended;
    expect(nanny.restartCount).toBe(2);
    expect(lines.filter((line) => line.startsWith('warn'))).toHaveLength(2);
    expect(lines.at(-1)).toMatch(
      /^error the process of worker "w" ended with exit code 3, .*It died 3 times in a row; its nanny gives up\.$/,
    );
    expect(nanny.error).toMatchObject({ code: 'ERR_NO_WORKER', data: { exitCode: 3 } });
  });

  test('does not replace what never came up, or has lost its scheduler', async () => {
    const never = look('never').nanny;
    const gone = look('gone').nanny;
    await Promise.all([never.ended, gone.ended]);
    expect([never.restartCount, gone.restartCount]).toEqual([0, 0]);
    expect(never.deathError().message).toContain('exit code 3; on its error stream: no luck');
    expect(gone.error).toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('replaces a process whose streams are kept open by one that it has started', async () => {
    const rules = { stableAfterMs: 0, attemptsMax: 1, firstDelayMs: 1 };
    const { lines, registrations } = look('parent', { rules, stuckAfterMs: 2500 });
    const startMs = Date.now();
    await registrations(2);
    expect(lines[0]).toMatch(/ended with exit code 3/);
    expect(Date.now() - startMs).toBeLessThan(5000);
  });

  test('replaces a process that gives no sign of life', async () => {
    const { nanny, lines, registrations } = look('silent', { stuckAfterMs: 1000 });
    await registrations(2);
    expect(nanny.restartCount).toBe(1);
    expect(lines[0]).toMatch(/gave no sign of life any more and was killed/);
  });

  test('replaces a stopped process, and counts from one when it had run long enough', async () => {
    const rules = { stableAfterMs: 0, attemptsMax: 1, firstDelayMs: 1 };
    const { nanny, registrations } = look('live', { rules, stuckAfterMs: 1000 });
    await registrations(1);
    process.kill(nanny.pid!, 'SIGSTOP');
    await registrations(2);
    nanny.kill();
    await registrations(3);
    expect(nanny.restartCount).toBe(2);
    await nanny.close(0);
    expect(nanny.pid).toBeUndefined();
    expect(nanny.error).toBeUndefined();
  });

  test('ends while it waits for the next start', async () => {
    const { nanny, registrations } = look('live', { rules: { firstDelayMs: 60_000 } });
    await registrations(1);
    nanny.kill();
    while (nanny.pid !== undefined) await new Promise(setImmediate);
    await new Promise(setImmediate);
    await nanny.close();
    await nanny.ended;
    expect(nanny.restartCount).toBe(0);
  });
});
