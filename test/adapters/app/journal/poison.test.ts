import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { SYSTEM_FILES } from '../../../../adapters/log/segment-file.ts';
import { byFactory, type Provider } from '../../../../core/api/token.ts';
import type { Outbox } from '../../../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../../../core/kernel/kernel.ts';
import type { Stimulus } from '../../../../core/messages/stimulus.ts';
import { CLOCK } from '../../../../core/host/tokens.ts';
import { PortsCompiler } from '../../../../core/scheduler-host/kernel-ports.ts';
import { lineLog } from '../../../../core/shared/line-log.ts';

/** A kernel with a bug from which it cannot recover. */
class MortalKernel extends SchedulerKernel {
  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    if (stimulus.op === 'update-graph' && stimulus.keys.includes('poison'))
      throw new Error('a bug');
    return super.handle(stimulus, nowMs);
  }

  override recover(_: Stimulus, cause: unknown): Outbox {
    throw cause;
  }
}

function withKernel(Kernel: typeof SchedulerKernel): readonly Provider[] {
  return [
    byFactory(SchedulerKernel, (services) => {
      return new Kernel({}, services.get(PortsCompiler).compile(), services.get(CLOCK).nowMs());
    }),
  ];
}

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-poison-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function graph(key: string) {
  const tasks = [{ key, dependencies: [], runSpec: new Uint8Array([1]) }];
  return { op: 'update-graph', client: 'c', tasks, keys: [key] } as const;
}

it('a scheduler starts without the entry of its journal at which it ended, and says so', async () => {
  const journal = join(emptyFolder(), 'journal');
  const provide = withKernel(MortalKernel);
  const first = await openScheduler({ journal, provide, log: lineLog([]) });
  first.scheduler.enqueue({ op: 'register-client', client: 'c', secretHash: 'hash' });
  first.scheduler.enqueue(graph('before'));
  first.scheduler.enqueue(graph('poison'));
  await expect(first.closed).rejects.toThrow('a bug');

  for (const attempt of [1, 2]) {
    const lines: string[] = [];
    const next = await openScheduler({ journal, provide, log: lineLog(lines) });
    expect([attempt, ...next.scheduler.kernel.cluster.tasks.keys()], lines.join('\n')).toEqual([
      attempt,
      'before',
    ]);
    const said = lines.filter((line) => line.includes('starts again without it'));
    // The first segment that it writes is without the entry.
    expect(said).toHaveLength(attempt === 1 ? 1 : 0);
    if (attempt === 1) {
      expect(said[0]).toMatch(/ended at update-graph-\d+ \(update-graph\) of c about poison/);
    }
    await next.close();
  }
});

/** Opens a scheduler that is killed while it handles the graph `hang`. Returns the journal that it leaves behind. */
async function killedAt(journal: string): Promise<{ left: string | undefined; lines: string[] }> {
  let left: string | undefined;
  class HangingKernel extends SchedulerKernel {
    override handle(stimulus: Stimulus, nowMs: number): Outbox {
      if (left === undefined && stimulus.op === 'update-graph' && stimulus.keys.includes('hang')) {
        left = `${journal}+`;
        cpSync(journal, left, { recursive: true });
        for (const name of readdirSync(left))
          if (name.startsWith('lock.')) rmSync(join(left, name));
      }
      return super.handle(stimulus, nowMs);
    }
  }
  const lines: string[] = [];
  const provide = withKernel(HangingKernel);
  const opened = await openScheduler({ journal, provide, log: lineLog(lines) });
  await opened.close();
  return { left, lines };
}

it('an entry at which one scheduler after the other is killed is left out, loudly', async () => {
  let journal = join(emptyFolder(), 'journal');
  const first = await openScheduler({ journal, log: lineLog([]) });
  first.scheduler.enqueue({ op: 'register-client', client: 'c', secretHash: 'hash' });
  for (const key of ['before', 'hang', 'after']) first.scheduler.enqueue(graph(key));
  await new Promise(setImmediate);
  const entries = `${journal}-read`;
  cpSync(journal, entries, { recursive: true });
  for (const name of readdirSync(entries))
    if (name.startsWith('lock.')) rmSync(join(entries, name));
  await first.close();
  journal = entries;

  for (let start = 1; start <= 3; start++) {
    const { left, lines } = await killedAt(journal);
    expect([start, left, lines]).toEqual([start, `${journal}+`, []]);
    journal = left as string;
  }
  const { left, lines } = await killedAt(journal);
  expect(left).toBeUndefined();
  expect(lines.join('\n')).toMatch(
    /several starts.* ended at .*\(update-graph\) of c about hang.* starts again without it/,
  );
  const last = await openScheduler({ journal, log: lineLog([]) });
  expect([...last.scheduler.kernel.cluster.tasks.keys()]).toEqual(['before', 'after']);
  await last.close();
  expect(readdirSync(journal)).not.toContain('reading');
});

it('a disk that fails behind the last entry of a journal does not count as the fault of that entry', async () => {
  const journal = join(emptyFolder(), 'journal');
  const first = await openScheduler({ journal, log: lineLog([]) });
  first.scheduler.enqueue({ op: 'register-client', client: 'c', secretHash: 'hash' });
  for (const key of ['before', 'last']) first.scheduler.enqueue(graph(key));
  await first.close();
  const fdatasyncSync = (): void => {
    throw new Error('EIO: i/o error, fdatasync');
  };
  const files = { ...SYSTEM_FILES, fdatasyncSync };
  for (let start = 0; start < 4; start++) {
    const opened = openScheduler({ journal: { folder: journal, files }, log: lineLog([]) });
    await expect(opened).rejects.toThrow('EIO');
  }
  const last = await openScheduler({ journal, log: lineLog([]) });
  expect([...last.scheduler.kernel.cluster.tasks.keys()]).toEqual(['before', 'last']);
  await last.close();
});
