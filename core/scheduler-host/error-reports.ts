import type { YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import { nextToReport } from '../host/log.ts';
import type { PolicyFailure } from '../kernel/ports.ts';
import { HookRegistry } from '../plugin-host/hooks.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { FailureCount } from '../util/failure-count.ts';

/** Reports errors that the scheduler survives: to the log, and to the hook `errorReported`. */
@collaborator
export class ErrorReports {
  private readonly policyFailures = new FailureCount();

  constructor(
    @inject(LOGGER) private readonly log: Logger,
    private readonly hooks: HookRegistry,
  ) {}

  /**
   * Reports that a policy failed, which may repeat in every decision: the 1st, 2nd, 4th, 8th time and so on.
   */
  policyFailed({ question, error, slot }: PolicyFailure): void {
    this.policyJudged?.(question, error);
    const next = nextToReport(this.policyFailures, error, { kind: slot, of: 'policy' });
    if (next !== undefined) this.report(next);
  }

  /** A policy has answered a question, or failed to do so. Of interest to those who count. */
  policyJudged?(question: PolicyFailure['question'], failure?: YardmasterError): void;

  /** Other policies are in charge, perhaps: the failures of each are counted anew. */
  policiesChanged(): void {
    this.policyFailures.clear();
  }

  report(error: YardmasterError): void {
    this.log.error({ err: error, code: error.code, ...error.data }, error.message);
    for (const hook of this.hooks.current?.errorReported ?? []) hook(error);
  }
}
