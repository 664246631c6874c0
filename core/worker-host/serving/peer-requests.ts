import { token, type Token } from '../../api/plugin.ts';
import type { WireMessage } from '../../api/transport.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { WorkerIdentity } from '../../state/worker.ts';
import { valueBytes } from '../../util/shared-memory.ts';
import { hostOf, isLoopback } from '../../util/hosts.ts';
import type { WorkerKernel } from '../../worker/worker-kernel.ts';
import { resultRunId } from '../../worker/worker-task.ts';
import { DATA_SERVER, type DataServer, type ServedWorker } from './data-server.ts';
import { WORKER_IDENTITY, WORKER_KERNEL, WORKER_OPTIONS } from '../tokens.ts';
import { WORKER_DESCRIPTION, type WorkerDescription } from './worker-description.ts';
import { WORKER_INBOX, type WorkerInbox } from '../worker-inbox.ts';
import { takeIn } from '../scheduler/worker-intake.ts';
import { WORKER_LINK, type WorkerLink } from '../scheduler/worker-link.ts';
import { WORKER_MEMORY, type WorkerMemory } from '../memory/worker-memory.ts';
import type { WorkerHostOptions } from '../worker-options.ts';
import { WORKER_STATUS, type WorkerStatusTracker } from '../memory/worker-status-tracker.ts';

export const PEER_REQUESTS: Token<PeerRequests> = token('peer-requests');

const OUTGOING_TRANSFERS_MAX = 50;

/** What peers and clients ask of a worker. */
export class PeerRequests implements ServedWorker {
  constructor(
    @inject(DATA_SERVER) server: DataServer,
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly worker: WorkerIdentity,
    @inject(WORKER_KERNEL) private readonly kernel: WorkerKernel,
    @inject(WORKER_MEMORY) private readonly memory: WorkerMemory,
    @inject(WORKER_STATUS) private readonly status: WorkerStatusTracker,
    @inject(WORKER_INBOX) private readonly inbox: WorkerInbox,
    @inject(WORKER_LINK) private readonly link: WorkerLink,
    @inject(WORKER_DESCRIPTION) private readonly description: WorkerDescription,
  ) {
    server.connect(this);
  }

  /**
   * Answers under way at once: one beyond the threshold `pause`, also while it retires, because what it
   * reads from disk for others would fill its memory further. To its own host twice as many as to others.
   */
  outgoingMax(peerAddress: string): number {
    const { isShortOfMemory, status } = this.status;
    if (isShortOfMemory || status === 'paused') return 1;
    const max = this.options.outgoingTransfersMax ?? OUTGOING_TRANSFERS_MAX;
    const host = hostOf(peerAddress);
    return host === this.worker.host || isLoopback(host) ? 2 * max : max;
  }

  runIdOf(key: string): number {
    const task = this.kernel.tables.tasks.get(key);
    return task === undefined ? -1 : resultRunId(task);
  }

  putData(keys: readonly string[], values: readonly Uint8Array[]): void {
    takeIn({ tables: this.kernel.tables, store: this.memory.store }, keys, values);
    const nbytes = values.map(valueBytes);
    const stimulusId = this.link.nameEvent('update-data');
    this.inbox.feed({ op: 'update-data', keys, nbytes, stimulusId });
  }

  identity(): WireMessage {
    return this.description.describe();
  }
}
