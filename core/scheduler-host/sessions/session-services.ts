import { token, type Token } from '../../api/plugin.ts';
import type { Clock } from '../../api/clock.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK, CONFIG } from '../../plugin-host/injection/tokens.ts';
import type { Config } from '../../config/types.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { COMMANDS, type Commands } from '../commands/commands.ts';
import {
  NANNY_PLUGIN_REGISTRY,
  type RemotePluginRegistry,
  WORKER_PLUGIN_REGISTRY,
} from '../commands/remote-plugin-registry.ts';
import { JOURNAL, type SchedulerJournal } from '../journal.ts';
import { ERROR_REPORTS, type ErrorReports } from '../life/error-reports.ts';
import { type Gatherer, GATHERER } from '../results/gatherer.ts';
import { type Stimuli, STIMULI, STIMULUS_QUEUE, type StimulusQueue } from '../stimulus-queue.ts';
import { CLUSTER, SERVER_ID } from '../tokens.ts';
import { CLIENT_QUEUES, type ClientQueues } from './client-queues.ts';
import { RECONNECT_GRACE, type ReconnectGrace } from './reconnect-grace.ts';
import { SESSIONS, type Sessions } from './sessions.ts';
import { WORKER_LOSSES, type WorkerLosses } from './worker-losses.ts';

export const SESSION_SERVICES: Token<SessionServices> = token('session-services');

/** The collaborators that every session uses. */
export class SessionServices {
  constructor(
    @inject(SERVER_ID) readonly serverId: string,
    @inject(CLOCK) readonly clock: Clock,
    @inject(CLUSTER) readonly cluster: ClusterState,
    @inject(SESSIONS) readonly sessions: Sessions,
    @inject(RECONNECT_GRACE) readonly reconnectGrace: ReconnectGrace,
    @inject(WORKER_LOSSES) readonly losses: WorkerLosses,
    @inject(WORKER_PLUGIN_REGISTRY) readonly workerPlugins: RemotePluginRegistry,
    @inject(NANNY_PLUGIN_REGISTRY) readonly nannyPlugins: RemotePluginRegistry,
    @inject(STIMULI) readonly stimuli: Stimuli,
    @inject(STIMULUS_QUEUE) readonly queue: StimulusQueue,
    @inject(CLIENT_QUEUES) readonly clientQueues: ClientQueues,
    @inject(COMMANDS) readonly commands: Commands,
    @inject(GATHERER) readonly gatherer: Gatherer,
    @inject(ERROR_REPORTS) readonly errors: ErrorReports,
    @inject(JOURNAL) readonly journal: SchedulerJournal,
    @inject(CONFIG) readonly config: Config,
  ) {}
}
