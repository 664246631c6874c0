import { YardmasterError } from '../api/errors.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { LogCheck, LogHeader, LoggedPolicies, PayloadCodec } from './format.ts';
import { LogWriter, type LogSink } from './log-writer.ts';
import type { KernelLog } from './recording-kernel.ts';

/** Stands for how to compute a task when that is no plain data. The kernel only asks whether there is any. */
const OPAQUE = 'not recorded';

/** Writes what a kernel is handed as the frames of a log. */
export class KernelLogWriter implements KernelLog {
  private readonly writer: LogWriter;

  constructor(codec: PayloadCodec, sink: LogSink, header: LogHeader, nowMs: number) {
    this.writer = new LogWriter(codec, sink);
    this.writer.append('header', nowMs, header);
  }

  stimulus(stimulus: Stimulus, nowMs: number, mark: number): void {
    try {
      this.writer.append('stimulus', nowMs, withoutValue(stimulus), mark);
    } catch (thrown) {
      if (!YardmasterError.is(thrown) || stimulus.op !== 'update-graph') throw thrown;
      const tasks = stimulus.tasks.map((task) =>
        task.runSpec === undefined ? task : { ...task, runSpec: OPAQUE },
      );
      this.writer.append('stimulus', nowMs, { ...stimulus, tasks }, mark);
    }
  }

  policies(policies: LoggedPolicies, nowMs: number): void {
    this.writer.append('policies', nowMs, policies);
  }

  check(check: LogCheck, nowMs: number): void {
    this.writer.append('check', nowMs, check);
  }

  /** The last frame. */
  end(check: LogCheck, nowMs: number): void {
    this.writer.append('end', nowMs, check);
    this.writer.flush();
  }

  /** Hands on what has been gathered. */
  flush(): void {
    this.writer.flush();
  }
}

/** Results that come along pass by the kernel, so a replay does not need them. */
function withoutValue(stimulus: Stimulus): unknown {
  if (stimulus.op !== 'task-finished' || stimulus.value === undefined) return stimulus;
  // Codecs leave it out. A field that is deleted would turn the copy into a slow dictionary, once a task.
  return { ...stimulus, value: undefined };
}
