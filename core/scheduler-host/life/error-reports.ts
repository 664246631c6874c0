import type { YardmasterError } from '../../api/errors.ts';
import { type Logger, token, type Token } from '../../api/plugin.ts';
import { EVENT_BUS, type EventBus } from '../../plugin-host/event-bus.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { LOGGER } from '../../plugin-host/injection/tokens.ts';

export const ERROR_REPORTS: Token<ErrorReports> = token('error-reports');

/** Reports errors that the scheduler survives: to the log, and as the event `error`. */
export class ErrorReports {
  constructor(
    @inject(LOGGER) private readonly log: Logger,
    @inject(EVENT_BUS) private readonly bus: EventBus,
  ) {}

  report(error: YardmasterError): void {
    this.log.error({ err: error, code: error.code, ...error.data }, error.message);
    this.bus.emit('error', error);
  }
}
