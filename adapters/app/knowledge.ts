import { messageOf } from '../../core/api/errors.ts';
import { type Clock, every, type Logger } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { KnownPrefix } from '../../core/state/groups.ts';
import { readSmallText, replaceFile, SYSTEM_FILES } from '../log/segment-file.ts';

/** The interval at which the file is brought up to date. */
const WRITE_MS = 60_000;
/** A larger file is another one. */
const BYTES_MAX = 16 * 2 ** 20;

/** The file `scheduler.knowledge` as it was read; no text: there was none. */
interface KnowledgeFile {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * Hands the scheduler what the file `scheduler.knowledge` holds. Without such a setting, and with a file that cannot be
 * used, which the log names, it begins without knowledge.
 * @returns undefined when there is no file to be kept up to date
 */
export function recallKnowledge(scheduler: Scheduler, log: Logger): KnowledgeFile | undefined {
  const path = scheduler.config.scheduler.knowledge;
  if (path === undefined) return undefined;
  try {
    const text = readText(path);
    if (text === undefined) return { path, text };
    const { prefixes } = JSON.parse(text) as { readonly prefixes: readonly KnownPrefix[] };
    scheduler.enqueue({ op: 'recall-prefixes', prefixes });
    return { path, text };
  } catch (err) {
    log.warn(
      { err, knowledge: path },
      `the file of knowledge ${path} cannot be used: ${messageOf(err)}; the scheduler begins without it and leaves it as it is, until you repair or remove it`,
    );
    return undefined;
  }
}

/**
 * As {@link recallKnowledge}, and keeps the file up to date from then on.
 * @returns what writes it for the last time
 */
export function keepKnowledge(scheduler: Scheduler, clock: Clock, log: Logger): () => void {
  const file = recallKnowledge(scheduler, log);
  if (file === undefined) return () => undefined;
  const { path } = file;
  let { text } = file;
  const write = (): void => {
    const next = textOf(scheduler.kernel.cluster.knowledge());
    if (next === text) return;
    try {
      replaceFile(path, next, 0o600);
      text = next;
    } catch (err) {
      log.warn(
        { err, knowledge: path },
        `the file of knowledge ${path} cannot be written: ${messageOf(err)}`,
      );
    }
  };
  write();
  const timer = every(clock, WRITE_MS, write);
  return () => {
    timer.cancel();
    write();
  };
}

/** Undefined: there is no file. */
function readText(path: string): string | undefined {
  try {
    return readSmallText(path, SYSTEM_FILES, BYTES_MAX);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function textOf(prefixes: readonly KnownPrefix[]): string {
  const lines = prefixes.map((known) => `\n  ${JSON.stringify(known)}`);
  return `{"prefixes": [${lines.join(',')}\n]}\n`;
}
