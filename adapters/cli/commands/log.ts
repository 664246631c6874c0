import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { YardmasterError } from '../../../core/api/index.ts';
import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import { logFiles, repairLog, wholeRecording } from '../../app/read-log.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf, printableLines } from '../../../core/util/values.ts';
import { checkOutput } from '../command-line.ts';
import { say, textTable } from '../terminal.ts';
import { print } from '../with-client.ts';
import { ThreadRows } from '../../report/index.ts';

/** Flags of `log inspect` and `log verify`. */
export interface LogFlags {
  readonly json?: boolean;
}

export interface ExportFlags {
  readonly format: 'ndjson' | 'chrome-trace';
  readonly output?: string;
}

interface Summary {
  readonly header: LogHeader | undefined;
  readonly bytes: number;
  readonly frames: number;
  readonly durationMs: number;
  /** Stimuli by kind. */
  readonly stimuli: Readonly<Record<string, number>>;
  /** `closed`: written to its end. `open`: it ends between two frames. */
  readonly end: 'closed' | 'open' | 'torn' | 'damaged' | 'foreign';
  readonly problem: string | undefined;
}

const DAMAGED_CODE = 1;

export async function inspectCommand(file: string, flags: LogFlags): Promise<number> {
  const summary = await summarise(file);
  say(flags.json === true ? jsonText(summary) : summaryText(summary));
  return codeOf(summary);
}

export async function verifyCommand(file: string, flags: LogFlags): Promise<number> {
  const summary = await summarise(file);
  const { frames, end, problem } = summary;
  const verdict = problem ?? `${countOf(frames, 'frame')}, all readable; the recording is ${end}`;
  say(flags.json === true ? jsonText(summary) : `${verdict}\n`);
  return codeOf(summary);
}

export function repairCommand(file: string, flags: { readonly json?: boolean }): Promise<number> {
  const repaired = repairLog(file);
  const { keptBytes, copy } = repaired;
  const text =
    keptBytes === undefined
      ? `${file} is readable to its end; nothing was changed`
      : `${file} was cut to its first ${keptBytes} bytes; it is kept as it was in ${String(copy)}`;
  print({ file, ...repaired }, text, flags);
  return Promise.resolve(0);
}

export async function exportCommand(
  file: string,
  { format, output }: ExportFlags,
): Promise<number> {
  checkOutput(output, file);
  const frames = wholeRecording(file);
  const text = Readable.from(shown(format === 'ndjson' ? ndjson(frames) : chromeTrace(frames)));
  if (output === undefined) await toStandardOutput(text);
  else await toFile(text, output);
  return 0;
}

/** Escapes what JSON leaves as it is and terminals obey, which is JSON for the same text. */
async function* shown(parts: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const part of parts) yield printableLines(part);
}

/** A reader that has seen enough, as `head`, ends the export in good order. */
async function toStandardOutput(text: Readable): Promise<void> {
  try {
    await pipeline(text, process.stdout, { end: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

/** A file of that name is replaced when the export is complete. */
async function toFile(text: Readable, path: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.part`;
  try {
    await pipeline(text, createWriteStream(unfinished, { flags: 'wx' }));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function summarise(file: string): Promise<Summary> {
  let header: LogHeader | undefined;
  let frames = 0;
  let startMs: number | undefined;
  let endMs = 0;
  let isClosed = false;
  const stimuli: Record<string, number> = {};
  let damage: YardmasterError | undefined;
  try {
    for await (const frame of wholeRecording(file)) {
      frames++;
      startMs ??= frame.timeMs;
      endMs = frame.timeMs;
      isClosed = frame.kind === 'end';
      if (frame.kind === 'header') header = frame.payload;
      if (frame.kind !== 'stimulus') continue;
      const { op } = frame.payload;
      stimuli[op] = (stimuli[op] ?? 0) + 1;
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || error.data['damage'] === undefined) throw error;
    damage = error;
  }
  const end = (damage?.data['damage'] ?? (isClosed ? 'closed' : 'open')) as Summary['end'];
  const sizes = await Promise.all(logFiles(file).map((part) => stat(part)));
  const bytes = sizes.reduce((sum, { size }) => sum + size, 0);
  const durationMs = endMs - (startMs ?? endMs);
  return { header, bytes, frames, durationMs, stimuli, end, problem: damage?.message };
}

function summaryText(summary: Summary): string {
  const { header, bytes, frames, durationMs, stimuli, end, problem } = summary;
  const lines = [
    ...(header === undefined
      ? []
      : [
          `recorded   ${new Date(header.createdAtMs).toISOString()}, Yardmaster ${header.version}`,
          `scheduler  ${header.schedulerId}`,
        ]),
    `holds      ${countOf(frames, 'frame')}, ${sizeText(bytes)}, ${(durationMs / 1000).toFixed(1)} s`,
    `ends       ${problem ?? (end === 'closed' ? 'in good order' : 'open: the scheduler was killed, or is running')}`,
  ];
  const rows = Object.entries(stimuli).sort(([, a], [, b]) => b - a);
  if (rows.length > 0) lines.push('', textTable(['stimulus', 'number'], rows));
  return `${lines.join('\n')}\n`;
}

function jsonText(summary: Summary): string {
  return `${JSON.stringify(summary, undefined, 2)}\n`;
}

function codeOf({ problem }: Summary): number {
  return problem === undefined ? 0 : DAMAGED_CODE;
}

type Frames = AsyncIterable<LogFrame>;

/** One JSON object a line for each frame; bytes become base64. */
async function* ndjson(frames: Frames): AsyncGenerator<string, void, undefined> {
  for await (const frame of frames) yield `${JSON.stringify(frame, plain)}\n`;
}

/**
 * Events of the Trace Event Format, which Perfetto and chrome://tracing open: a process for each worker, a row for
 * each of its threads, a rectangle for each action of a task.
 */
async function* chromeTrace(frames: Frames): AsyncGenerator<string, void, undefined> {
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
