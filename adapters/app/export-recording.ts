import type { LogFrame } from '../../core/log/format.ts';

type Frames = AsyncIterable<LogFrame>;

/** One JSON object a line for each frame; bytes become base64. */
export async function* ndjson(frames: Frames): AsyncGenerator<string, void, undefined> {
  for await (const frame of frames) yield `${JSON.stringify(frame, plain)}\n`;
}

/**
 * Events of the Trace Event Format, which Perfetto and chrome://tracing open: a process for each worker, a row for
 * each of its threads, a rectangle for each action of a task.
 */
export async function* chromeTrace(frames: Frames): AsyncGenerator<string, void, undefined> {
  const workers = new Map<string, WorkerRows>();
  let separator = '';
  yield '{"displayTimeUnit":"ms","traceEvents":[\n';
  for await (const frame of frames) {
    if (frame.kind !== 'stimulus') continue;
    const { payload } = frame;
    if (payload.op !== 'task-finished' && payload.op !== 'task-erred') continue;
    const { worker, key, timings = [] } = payload;
    let rows = workers.get(worker);
    if (rows === undefined) {
      rows = new WorkerRows(workers.size + 1);
      workers.set(worker, rows);
      yield `${separator}${JSON.stringify(processName(rows.pid, worker))}`;
      separator = ',\n';
    }
    for (const { action, startS, stopS } of timings) {
      const place = { pid: rows.pid, tid: rows.rowFor(startS, stopS) };
      const time = { ts: startS * 1e6, dur: Math.max(0, stopS - startS) * 1e6 };
      const args = { key, failed: payload.op === 'task-erred' };
      const name = action === 'compute' ? key : `${action} ${key}`;
      const event = { name, cat: action, ph: 'X', ...place, ...time, args };
      yield `${separator}${JSON.stringify(event)}`;
      separator = ',\n';
    }
  }
  yield '\n]}\n';
}

/** Rows of one worker: what overlaps in time lies in different ones. */
class WorkerRows {
  /** The time at which the last rectangle of each row ends, in seconds. */
  private readonly endsS: number[] = [];

  constructor(readonly pid: number) {}

  /** The first row that is free by then. O(threads). */
  rowFor(startS: number, stopS: number): number {
    const free = this.endsS.findIndex((endS) => endS <= startS);
    const row = free < 0 ? this.endsS.length : free;
    this.endsS[row] = stopS;
    return row + 1;
  }
}

function processName(pid: number, worker: string): object {
  return { name: 'process_name', ph: 'M', pid, args: { name: worker } };
}

function plain(_: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
  return value === Infinity ? 'Infinity' : value;
}
