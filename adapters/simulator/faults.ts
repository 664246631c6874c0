/**
 * What goes wrong, and when, in milliseconds of virtual time. `worker` is the number of a place, from 0 on: when a
 * worker there has been started again, the new one is meant. A place without a worker is left alone.
 */
export type Fault = KillFault | JoinFault | PauseFault | StraggleFault | DelayFault;

/** A worker dies with all it holds. */
export interface KillFault {
  readonly kind: 'kill';
  readonly worker: number;
  readonly atMs: number;
  /** Another worker starts in its place after this time. Default: none does. */
  readonly restartAfterMs?: number;
}

/** Another worker comes. */
export interface JoinFault {
  readonly kind: 'join';
  readonly atMs: number;
  /** Threads. Default: as the first worker. */
  readonly threads?: number;
}

/** The process of a worker stands still. */
export interface PauseFault {
  readonly kind: 'pause';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
}

/** The runs that a worker begins meanwhile take longer by a factor. */
export interface StraggleFault {
  readonly kind: 'straggle';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
  readonly factor: number;
}

/** Messages between a worker and the scheduler take longer. */
export interface DelayFault {
  readonly kind: 'delay';
  readonly worker: number;
  readonly atMs: number;
  readonly forMs: number;
  readonly byMs: number;
}
