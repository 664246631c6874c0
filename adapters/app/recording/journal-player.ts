import { KERNEL_SLOT_NAMES, type SchedulerHooks } from '../../../core/api/index.ts';
import { SchedulerKernel } from '../../../core/kernel/scheduler-kernel.ts';
import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import { DEFAULT_POLICIES } from '../../../core/plugin-host/loading/load-extensions.ts';
import { RecordedPolicies } from '../../../core/plugin-host/recorded-policies.ts';
import { builtins } from '../builtin-extensions.ts';
import { hookCalls } from './recording-player.ts';

/**
 * Hands the entries of a journal to a kernel, as a scheduler that starts again does. Its workers stay paused, because
 * none of them comes back.
 */
export class JournalPlayer {
  kernel: SchedulerKernel | undefined;
  header: LogHeader | undefined;
  readonly policyNames: Readonly<Record<string, string>> = Object.fromEntries(
    KERNEL_SLOT_NAMES.map((slot) => [slot, DEFAULT_POLICIES[slot]]),
  );

  constructor(private readonly hooks: Partial<SchedulerHooks>) {}

  async play(frame: LogFrame): Promise<void> {
    if (frame.kind === 'header') {
      this.header = frame.payload;
      this.kernel = await this.makeKernel(frame.timeMs);
    }
    const { kernel } = this;
    // `begin-recovery` says which ids are taken: only a scheduler that runs has to know.
    if (kernel === undefined || frame.kind !== 'entry' || frame.payload.op === 'begin-recovery') {
      return;
    }
    const { payload: entry, timeMs } = frame;
    kernel.handle(entry, timeMs);
    while (kernel.isUnsettled) {
      kernel.handle({ op: 'continue-settling', stimulusId: entry.stimulusId }, timeMs);
    }
  }

  private async makeKernel(nowMs: number): Promise<SchedulerKernel> {
    const named = Object.entries(this.policyNames).map(([slot, name]) => {
      return [slot, { name, entry: { use: name } }] as const;
    });
    const policies = new RecordedPolicies(builtins, process.cwd());
    const ports = await policies.ports(Object.fromEntries(named));
    return new SchedulerKernel({}, { ...ports, hooks: hookCalls(this.hooks) }, nowMs);
  }
}
