import type { YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import { nextToReport } from '../host/log.ts';
import type { PolicyFailure } from '../kernel/ports.ts';
import { EventBus } from '../plugin-host/event-bus.ts';
import { collaborator, inject, LOGGER } from '../plugin-host/injection.ts';
import { FailureCount } from '../util/failure-count.ts';

/** Reports errors that the scheduler survives: to the log, and as the event `error`. */
@collaborator
export class ErrorReports {
  private readonly policyFailures = new FailureCount();

  constructor(
    @inject(LOGGER) private readonly log: Logger,
    private readonly bus: EventBus,
  ) {}

  /**
   * Reports that a policy failed, which may repeat in every decision: the 1st, 2nd, 4th, 8th time and so on.
   */
  policyFailed({ error, slot }: PolicyFailure): void {
    const next = nextToReport(this.policyFailures, error, { kind: slot, of: 'policy' });
    if (next !== undefined) this.report(next);
  }

  /** An answer of a policy was used that a plugin had asked. Of interest to those who count. */
  policyAnswered?(question: PolicyFailure['question']): void;

  /** Other policies are in charge, perhaps: the failures of each are counted anew. */
  policiesChanged(): void {
    this.policyFailures.clear();
  }

  report(error: YardmasterError): void {
    this.log.error({ err: error, code: error.code, ...error.data }, error.message);
    this.bus.emit('error', error);
  }
}
