import { collaborator } from '../plugin-host/injection.ts';
import type { WorkerStatus } from '../state/worker.ts';
import type { MemoryMode } from '../worker/memory.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerLink } from './worker-link.ts';
import { WorkerPlugins } from './worker-plugins.ts';

/** The activities that a worker starts: none, one task at a time, or all that it can. */
type MemoryPace = 'pause' | 'crawl' | 'unpause';

/** The status of a worker, from the status that the scheduler wants and the one that its memory allows. */
@collaborator
export class WorkerStatusTracker {
  /** The status that the scheduler wants. While that is `running`, memory may pause the worker. */
  private wantedStatus: WorkerStatus = 'running';
  private memoryMode: MemoryMode = 'running';

  constructor(
    private readonly inbox: WorkerInbox,
    private readonly link: WorkerLink,
    private readonly plugins: WorkerPlugins,
  ) {}

  /** The status that the scheduler receives. */
  get status(): WorkerStatus {
    const { wantedStatus } = this;
    return wantedStatus === 'running' && this.memoryMode === 'paused' ? 'paused' : wantedStatus;
  }

  /** True when its memory holds it back, whatever the scheduler wants it to be. */
  get isShortOfMemory(): boolean {
    return this.memoryMode !== 'running';
  }

  /** The scheduler wants it to be that. */
  want(status: WorkerStatus, stimulusId: string): void {
    if (status === this.wantedStatus) return;
    this.adapt(stimulusId, () => (this.wantedStatus = status));
  }

  allow(mode: MemoryMode, stimulusId: string): void {
    this.adapt(stimulusId, () => (this.memoryMode = mode));
  }

  /** It has closed; nobody is told. */
  end(): void {
    this.wantedStatus = 'closed';
  }

  /** Brings the machine, and what the scheduler knows, in line with a change. */
  private adapt(stimulusId: string, change: () => void): void {
    const before = this.status;
    const paceBefore = this.pace;
    change();
    const { status, pace } = this;
    if (pace !== paceBefore) this.inbox.put({ op: pace, stimulusId });
    if (status === before) return;
    this.link.report({ op: 'worker-status-change', status });
    this.plugins.call('statusChanged', status);
  }

  private get pace(): MemoryPace {
    if (this.status !== 'running') return 'pause';
    return this.memoryMode === 'crawling' ? 'crawl' : 'unpause';
  }
}
