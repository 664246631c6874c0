import type { RemotePlugin, WireMessage } from '../../core/api/index.ts';

/** Why a worker process is about to end, as it says itself. A crash says nothing. */
export type ExitReason =
  /** The scheduler or the nanny has requested it. */
  | { readonly kind: 'done'; readonly reason: string }
  /** It shall be started again: the scheduler said so, or took it for dead. */
  | { readonly kind: 'restart'; readonly reason: string }
  /** It failed while it ran. */
  | { readonly kind: 'failed'; readonly reason: string; readonly code: string };

/** Messages from a worker process to its nanny. */
export type FromWorkerProcess =
  | { readonly op: 'registered'; readonly address: string }
  /** Every second, from the thread that serves scheduler and peers. */
  | { readonly op: 'alive' }
  | { readonly op: 'ends'; readonly words: ExitReason }
  /** Plugins that clients have registered for nannies: all that there shall be. */
  | { readonly op: 'nanny-plugins'; readonly wanted: readonly RemotePlugin[] }
  /** One of them is to be added or removed; it is answered. */
  | { readonly op: 'nanny-plugin'; readonly id: number; readonly request: WireMessage };

/** Messages from a nanny to its worker process. */
export type ToWorkerProcess =
  /** Close in good order; before that, give away what only this worker holds, if there is time. */
  | { readonly op: 'close'; readonly retireMs: number }
  /** Close in good order, with nothing given away; another process takes its place. */
  | { readonly op: 'restart' }
  /** The answer to `registered`, when this process replaces another one. */
  | { readonly op: 'replaces'; readonly event: RestartEvent }
  /** The answer to `nanny-plugin`. */
  | {
      readonly op: 'nanny-plugin-answer';
      readonly id: number;
      readonly answer?: WireMessage;
      readonly error?: { readonly code: string; readonly message: string };
    };

/** Published under the topics `all` and the address of the worker that came back. */
export interface RestartEvent {
  readonly action: 'worker-restarted';
  readonly name: string;
  /** How the process before ended, for people. */
  readonly reason: string;
  /** Of the process before. */
  readonly pid: number | undefined;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** Restarts by this nanny, this one included. */
  readonly restartCount: number;
}

/** Between two signs of life. */
export const ALIVE_MS = 1000;
