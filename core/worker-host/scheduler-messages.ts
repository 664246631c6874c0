import { YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import type { HeldResults, HeldRuns } from '../messages/protocol.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { notBack, RECONNECT_TIMEOUT_MS } from '../shared/reconnect.ts';
import { inBackground } from '../shared/timers.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import { failedKeys, heldResults, heldRuns } from '../worker/on-scheduler.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { PeerChannels } from './peer-channels.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerDescription } from './worker-description.ts';
import { WorkerEnding } from './worker-ending.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerInspection } from './worker-inspection.ts';
import { type LinkedWorker, schedulerGone, WorkerLink } from './worker-link.ts';
import type { WorkerHostOptions } from './worker-options.ts';
import { WorkerPlugins } from './worker-plugins.ts';
import { WorkerStatusTracker } from './worker-status.ts';

/** Handles the messages and requests of the scheduler, and its absence. */
@collaborator
export class SchedulerMessages implements LinkedWorker {
  constructor(
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly link: WorkerLink,
    private readonly inbox: WorkerInbox,
    private readonly tracker: WorkerStatusTracker,
    private readonly description: WorkerDescription,
    private readonly activities: WorkerActivities,
    private readonly inspection: WorkerInspection,
    private readonly plugins: WorkerPlugins,
    private readonly peers: PeerChannels,
    private readonly ending: WorkerEnding,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    link.connect(this);
  }

  status(): WorkerStatus {
    return this.tracker.status;
  }

  metrics(): WorkerMetrics {
    return this.description.metrics();
  }

  executing(): [key: string, seconds: number][] {
    return this.activities.executing();
  }

  held(keepsRuns: boolean): { readonly held: HeldResults; readonly runs?: HeldRuns } {
    const { tables } = this.kernel;
    if (!keepsRuns) return { held: heldResults(tables) };
    // A failure that was not heard is found again by the next run.
    const keys = failedKeys(tables);
    const stimulusId = this.link.nameEvent('scheduler-back');
    if (keys.length > 0) this.inbox.feed({ op: 'free-keys', keys, stimulusId });
    return { held: heldResults(tables, true), runs: heldRuns(tables) };
  }

  onMessage(message: ToWorkerMessage): void {
    switch (message.op) {
      case 'worker-status-change':
        this.tracker.want(message.status, message.stimulusId);
        break;
      case 'close':
        // A scheduler that closes may be started again.
        if (this.reconnects && message.reason === 'scheduler-close') break;
        this.ending.beginInBackground({
          reason: `the scheduler asked for it: ${message.reason}`,
          restart: message.restart === true,
        });
        break;
      case 'remove-worker':
        this.peers.drop(message.worker, 'the scheduler says that it is gone');
        this.inbox.put(message);
        break;
      case 'compute-task':
      case 'free-keys':
      case 'steal-request':
      case 'set-priority':
      case 'extend-time-limits':
      case 'resume-run':
      case 'acquire-replicas':
      case 'remove-replicas':
      case 'refresh-who-has':
        this.inbox.put(message); // Handled at the end of the batch.
        break;
      default: {
        const { op } = message as { op?: unknown };
        this.log.warn({ op }, 'the scheduler sent a message that this worker ignores');
      }
    }
  }

  onBatchEnd(): void {
    this.inbox.drain();
  }

  onRequest(method: string, parameters: WireMessage): unknown {
    if (method === 'worker-plugin') return this.plugins.answer(parameters);
    if (method === 'nanny-plugin') return this.forNanny(parameters);
    return this.inspection.answer(method, parameters);
  }

  onGone(error: Error | undefined): void {
    if (!this.inbox.isOpen || this.ending.hasBegun) return;
    const gone = schedulerGone(this.options.schedulerAddress, error);
    if (!this.reconnects) this.ending.closeBecause(gone);
    else inBackground(this.comeBack(gone), (failed) => this.ending.fail(failed));
  }

  /** Another scheduler knows none of its results, and may give their keys to other tasks. */
  onOtherScheduler(): void {
    const keys = [...this.kernel.tables.tasks.keys()];
    const stimulusId = this.link.nameEvent('other-scheduler');
    this.inbox.feed({ op: 'free-keys', keys, stimulusId });
  }

  private get reconnects(): boolean {
    return this.options.onSchedulerLost === 'reconnect';
  }

  /** Results are kept for the scheduler, and runs if it keeps a journal. Other tasks are given up. */
  private async comeBack(gone: YardmasterError): Promise<void> {
    const { reconnect: rules = { timeoutMs: RECONNECT_TIMEOUT_MS } } = this.options;
    const { link, log, plugins } = this;
    const { address } = this.identity;
    log.warn({ err: gone, address }, `${gone.message}; the worker tries to come back`);
    const stimulusId = link.nameEvent('scheduler-lost');
    this.tracker.want('running', stimulusId);
    const { keepsRuns } = link;
    this.inbox.feed({ op: 'scheduler-lost', keepsRuns, stimulusId });
    plugins.call('schedulerLost');
    try {
      const { value, attempts, afterMs } = await link.reconnect(rules);
      log.info({ address, attempts, afterMs }, 'the worker is back with its scheduler');
      plugins.call('schedulerBack');
      await plugins.agree(value.workerPlugins ?? []);
      await this.options.nannyPlugins?.agree(value.nannyPlugins ?? []);
    } catch (error) {
      if (!this.ending.hasBegun) this.ending.closeBecause(notBack(gone, error));
    }
  }

  /** A request of the scheduler to the plugins of the nanny. */
  private forNanny(parameters: WireMessage): Promise<WireMessage> {
    const { nannyPlugins } = this.options;
    if (nannyPlugins !== undefined) return nannyPlugins.answer(parameters);
    const { name } = this.identity;
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `the worker ${name} has no nanny that could have plugins; start it with one`,
      { worker: name },
    );
  }
}
