import { YardmasterError } from '../api/errors.ts';
import { OPAQUE, type StatePart } from '../kernel/snapshot/state-parts.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type {
  LogCheck,
  LogHeader,
  LoggedPolicies,
  PayloadCodec,
  RecordingCheckpoint,
} from './format.ts';
import { LogWriter, type LogSink } from './log-writer.ts';
import type { KernelLog } from './recording-kernel.ts';

/** What a task takes in a checkpoint. A guess. */
const TASK_STATE_BYTES = 50;

/** How far apart checkpoints are. */
export interface CheckpointDistance {
  /** Bytes of other frames between two of them, at least. */
  readonly bytesMin: number;
  /** And so many times the bytes of the one before. */
  readonly ratio: number;
}

/**
 * A byte of a checkpoint takes about four times as long to make as the whole handling of the tasks that a byte of other
 * frames stands for: so checkpoints add some two percent to what the scheduler spends.
 */
export const CHECKPOINT_DISTANCE: CheckpointDistance = { bytesMin: 8 * 2 ** 20, ratio: 200 };

/** Writes what a kernel is handed as the frames of a log. */
export class KernelLogWriter implements KernelLog {
  private readonly writer: LogWriter;
  private dueBytes: number;
  /** Where the last checkpoint ended. */
  private endBytes = 0;

  constructor(
    codec: PayloadCodec,
    sink: LogSink,
    header: LogHeader,
    nowMs: number,
    private readonly distance = CHECKPOINT_DISTANCE,
  ) {
    this.writer = new LogWriter(codec, sink);
    this.dueBytes = distance.bytesMin;
    this.writer.append('header', nowMs, header);
  }

  /** Bytes so far. */
  get nbytes(): number {
    return this.writer.nbytes;
  }

  isCheckpointDue(tasks: number): boolean {
    const { nbytes } = this.writer;
    if (nbytes < this.dueBytes) return false;
    // The state may have grown since the last one, or there was none.
    return nbytes - this.endBytes >= this.distance.ratio * tasks * TASK_STATE_BYTES;
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

  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<RecordingCheckpoint, 'parts'>,
    nowMs: number,
  ): void {
    const { writer, distance } = this;
    const begin = writer.nbytes;
    this.postponeCheckpoint(); // It may fail.
    let count = 0;
    for (const part of parts) {
      writer.append('state', nowMs, part);
      count++;
    }
    writer.append('checkpoint', nowMs, { ...checkpoint, parts: count });
    this.endBytes = writer.nbytes;
    const least = distance.ratio * (writer.nbytes - begin);
    this.dueBytes = writer.nbytes + Math.max(distance.bytesMin, least);
  }

  /** The next checkpoint is due later, because this one could not be made. */
  postponeCheckpoint(): void {
    this.dueBytes = this.writer.nbytes + this.distance.bytesMin;
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
