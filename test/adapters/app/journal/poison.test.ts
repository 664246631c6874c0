import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { byFactory, type Provider } from '../../../../core/api/token.ts';
import type { Outbox } from '../../../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../../../core/kernel/kernel.ts';
import type { Stimulus } from '../../../../core/messages/stimulus.ts';
import { CLOCK } from '../../../../core/host/tokens.ts';
import { PortsCompiler } from '../../../../core/scheduler-host/kernel-ports.ts';
import { lineLog } from '../../../../adapters/testing/virtual-cluster.ts';

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

const provide: readonly Provider[] = [
  byFactory(SchedulerKernel, (services) => {
    return new MortalKernel({}, services.get(PortsCompiler).compile(), services.get(CLOCK).nowMs());
  }),
];

function graph(key: string) {
  const tasks = [{ key, dependencies: [], runSpec: new Uint8Array([1]) }];
  return { op: 'update-graph', client: 'c', tasks, keys: [key] } as const;
}

it('a scheduler starts without the entry of its journal at which it ended, and says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-poison-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const journal = join(folder, 'journal');
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
