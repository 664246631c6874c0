import type { YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { inBackground } from '../shared/timers.ts';
import { Deferred } from '../util/promises.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { WORKER_IDENTITY } from './tokens.ts';
import { broken, WorkerLink } from './worker-link.ts';
import type { WorkerEnd } from './worker-options.ts';

/** The end of a worker. It comes once, for the first reason there is, by the steps that `WorkerLife` sets. */
@collaborator
export class WorkerEnding {
  private readonly completed = new Deferred<WorkerEnd>();
  /** Resolves when everything has closed. */
  readonly finished = this.completed.promise;
  private closing: Promise<void> | undefined;
  private steps: (end: WorkerEnd) => Promise<void> = () => Promise.resolve();

  constructor(
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    private readonly link: WorkerLink,
    @inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Sets what {@link begin} runs. */
  runs(steps: (end: WorkerEnd) => Promise<void>): void {
    this.steps = steps;
  }

  get hasBegun(): boolean {
    return this.closing !== undefined;
  }

  /** Never rejects: what cannot be closed is named in the log. */
  begin(end: WorkerEnd): Promise<void> {
    this.closing ??= this.steps(end);
    return this.closing;
  }

  /** The worker did not get as far as being registered: closes by other steps. */
  abandon(steps: () => Promise<void>): Promise<void> {
    this.closing ??= steps();
    return this.closing;
  }

  /** All has closed. */
  complete(end: WorkerEnd): void {
    this.completed.resolve(end);
  }

  /** As {@link begin}, for callers that do not wait. */
  beginInBackground(end: WorkerEnd): void {
    const { address } = this.identity;
    inBackground(this.begin(end), (error) => {
      this.log.error({ err: error, address }, 'the worker ended badly');
    });
  }

  /** Closes in good order because of an error. */
  closeBecause(error: YardmasterError): void {
    this.log.error({ err: error, address: this.identity.address }, 'worker closes');
    this.beginInBackground({ reason: error.message, error });
  }

  /** Closes as if it had died: the scheduler counts it, since what it was processing may be the reason. */
  giveUp(error: YardmasterError): void {
    if (this.hasBegun) return;
    this.log.error({ err: error, ...error.data }, 'worker closes');
    this.link.abort(error);
    this.beginInBackground({ reason: error.message, error });
  }

  /** The kernel threw, or something else that cannot be: no worker is better than one that does other things than it says. */
  fail(cause: unknown): void {
    this.giveUp(broken(this.identity.address, cause));
  }
}
