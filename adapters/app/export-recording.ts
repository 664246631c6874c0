import type { LogFrame } from '../../core/log/format.ts';
import { ThreadRows } from '../report/index.ts';

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
  const workers = new Map<string, { readonly pid: number; readonly rows: ThreadRows }>();
  let separator = '';
  yield '{"displayTimeUnit":"ms","traceEvents":[\n';
  for await (const frame of frames) {
    if (frame.kind !== 'stimulus') continue;
    const { payload } = frame;
    if (payload.op !== 'task-finished' && payload.op !== 'task-erred') continue;
    const { worker, key, timings = [] } = payload;
    const { pid, rows } = workers.get(worker) ?? { pid: workers.size + 1, rows: new ThreadRows() };
    if (pid > workers.size) {
      workers.set(worker, { pid, rows });
      yield `${separator}${JSON.stringify(processName(pid, worker))}`;
      separator = ',\n';
    }
    for (const { action, startS, stopS } of timings) {
      const place = { pid, tid: rows.rowFor(startS, stopS) };
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

function processName(pid: number, worker: string): object {
  return { name: 'process_name', ph: 'M', pid, args: { name: worker } };
}

function plain(_: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
  return value === Infinity ? 'Infinity' : value;
}
