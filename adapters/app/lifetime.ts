import type { Clock, Logger } from '../../core/api/index.ts';
import type { WorkerConfig } from '../../core/config/types.ts';
import { inBackground } from '../../core/shared/timers.ts';
import type { WorkerEnd } from '../../core/worker-host/worker-options.ts';

/** A worker with a limited lifetime. */
interface TrackedLifetime {
  readonly name: string;
  readonly finished: Promise<unknown>;
  retire(timeoutMs: number): Promise<void>;
  close(end: Omit<WorkerEnd, 'error'>): Promise<void>;
}

/** Retires the worker when its time has come, then closes it. */
export function limitLifetime(
  worker: TrackedLifetime,
  config: Pick<WorkerConfig, 'lifetime' | 'lifetimeStagger' | 'lifetimeRestart' | 'retireTimeout'>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  random: () => number = Math.random,
): void {
  const { lifetime, lifetimeStagger, lifetimeRestart: restart, retireTimeout } = config;
  if (!Number.isFinite(lifetime)) return;
  const lifeMs = Math.max(0, lifetime + (2 * random() - 1) * lifetimeStagger);
  const timer = clock.setTimer(lifeMs, () => {
    const reason = `its lifetime of ${Math.round(lifeMs / 100) / 10} s is over`;
    log.info({ worker: worker.name, lifeMs, restart }, `the worker retires: ${reason}`);
    const ended = worker.retire(retireTimeout).then(() => worker.close({ reason, restart }));
    inBackground(ended, (error) => {
      log.error({ err: error, worker: worker.name }, 'the worker could not retire');
    });
  });
  inBackground(
    worker.finished.finally(() => timer.cancel()),
    (error) => log.debug({ err: error, worker: worker.name }, 'the worker ended with an error'),
  );
}

/** A worker of a local cluster, wherever it lives. */
export interface ClusterWorker {
  readonly name: string;
  /** Id of its process, if the process is separate. */
  readonly pid?: number;
  /** Resolves when it is gone, however it went. */
  readonly ended: Promise<void>;
  /** The reason why it is gone. */
  deathError(): Error;
  /** Ends it in good order. */
  close(): Promise<void>;
}

/** Starts one more worker; it may not be registered yet when the promise resolves. */
export type WorkerStarter = (name: string) => Promise<ClusterWorker>;
