import { token, type Token } from '../api/plugin.ts';
import { inject } from '../plugin-host/injection/di.ts';
import type { Instruction } from '../worker/events/events.ts';
import { WORKER_ACTIVITIES, type WorkerActivities } from './worker-activities.ts';
import { WORKER_ENDING, type WorkerEnding } from './worker-ending.ts';
import { type InstructionConsumer, WORKER_INBOX, type WorkerInbox } from './worker-inbox.ts';
import { WORKER_LINK, type WorkerLink } from './scheduler/worker-link.ts';

export const WORKER_HOST: Token<WorkerHost> = token('worker-host');

/**
 * The life of an event of a worker. Messages of the scheduler and the outcomes of runs and transfers wait in
 * the inbox, which has the kernel handle them; the instructions of the kernel are carried out here.
 */
export class WorkerHost implements InstructionConsumer {
  constructor(
    @inject(WORKER_INBOX) inbox: WorkerInbox,
    @inject(WORKER_ACTIVITIES) private readonly activities: WorkerActivities,
    @inject(WORKER_LINK) private readonly link: WorkerLink,
    @inject(WORKER_ENDING) private readonly ending: WorkerEnding,
  ) {
    inbox.connect(this);
  }

  carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'execute':
        return this.activities.execute(instruction);
      case 'gather':
        return this.activities.gather(instruction);
      case 'abort-execution':
        return this.activities.abortExecution(instruction);
      case 'rejoined':
        return this.activities.rejoined(instruction.key);
      case 'retry-busy-later':
        return this.activities.retryBusyLater(instruction.worker);
      case 'drop-data':
        return this.activities.dropData(instruction.key);
      case 'send':
        this.link.send(instruction.message);
    }
  }

  onBroken(cause: unknown): void {
    this.ending.fail(cause);
  }
}
