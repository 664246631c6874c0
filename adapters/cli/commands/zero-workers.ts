import { countOf } from '../../../core/util/values.ts';
import { transportsOfFile } from '../../app/start-scheduler.ts';
import { startZeroWorkers } from '../../zero-worker/index.ts';
import { untilStopped } from '../with-client.ts';
import { say } from '../terminal.ts';

/** Flags of `zero-workers`. */
export interface ZeroWorkersFlags {
  readonly workers: number;
  readonly threads: number;
  readonly resultSize: number;
  /** Its `scheduler.transport` reaches the scheduler. */
  readonly config?: string;
}

/** `yardmaster zero-workers`. Runs until it is stopped, or the scheduler is gone. */
export async function zeroWorkersCommand(
  scheduler: string,
  { workers: count, threads, resultSize: resultBytes, config }: ZeroWorkersFlags,
): Promise<number> {
  const zero = await startZeroWorkers(scheduler, {
    workers: count,
    threads,
    resultBytes,
    transports: await transportsOfFile(config),
  });
  const stopped = untilStopped(zero);
  say(
    `${countOf(count, 'worker')} with ${countOf(threads, 'thread')} each, which compute nothing\n`,
  );
  const code = await stopped;
  say(`${countOf(zero.finishedCount, 'task')} finished\n`);
  return code;
}
