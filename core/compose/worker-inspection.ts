import { YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import type { InspectReply } from '../messages/protocol.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import { describeWorkerTask } from './describe-cluster.ts';
import { versionsHere } from './diagnostics.ts';
import type { LogBook } from './log-book.ts';

/** Answers what the scheduler wants to know about a worker. */
export class WorkerInspection {
  constructor(
    private readonly kernel: WorkerKernel,
    private readonly logBook: LogBook,
    private readonly describe: () => WireMessage,
  ) {}

  /** @throws YardmasterError `ERR_PROTOCOL` for anything but `inspect` */
  answer(method: string, { what, count }: WireMessage): InspectReply {
    if (method !== 'inspect') {
      throw new YardmasterError('ERR_PROTOCOL', `a worker answers "${method}" to peers only`);
    }
    switch (what) {
      case 'versions':
        return versionsHere();
      case 'logs':
        return { lines: this.logBook.lines(typeof count === 'number' ? count : undefined) };
      case 'state':
        return {
          ...this.describe(),
          ...versionsHere(),
          tasks: [...this.kernel.tables.tasks.values()].map(describeWorkerTask),
          story: this.kernel.story(),
          logs: this.logBook.lines(),
        };
      default:
        throw new YardmasterError(
          'ERR_PROTOCOL',
          `a worker can be inspected for versions, logs or state, not for ${String(what)}`,
          { what },
        );
    }
  }
}
