import { token, type Token } from '../../api/plugin.ts';
import { versionsHere } from '../../host/versions.ts';
import type { SchedulerKernel } from '../../kernel/scheduler-kernel.ts';
import type { InspectReply, InspectRequest, LogLine } from '../../messages/protocol.ts';
import { type Answers, askWorkers, workersNamed } from './ask-workers.ts';
import { builtin, type BuiltinCommand, type Given } from './builtin-parameters.ts';
import { describeCluster } from './describe-cluster.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { PLUGINS, type PluginTable } from '../plugins/plugin-table.ts';
import { EVENT_LOG, type EventLog } from '../event-log.ts';
import { SESSIONS, type Sessions } from '../sessions/sessions.ts';
import { KERNEL, LOG_BOOK } from '../tokens.ts';
import type { LogBook } from '../../host/log-book.ts';
import { selectLines } from '../../host/log-selection.ts';

export const DIAGNOSTICS: Token<Diagnostics> = token('diagnostics');

/** A worker that has not answered within this time is listed as silent. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Commands that query all processes of the cluster in parallel. A worker that does not answer in
 * time does not delay the result: its entry is the error.
 */
export class Diagnostics {
  readonly commands: readonly BuiltinCommand[];

  constructor(
    @inject(KERNEL) private readonly kernel: SchedulerKernel,
    @inject(SESSIONS) private readonly sessions: Sessions,
    @inject(EVENT_LOG) private readonly events: EventLog,
    @inject(LOG_BOOK) private readonly logBook: LogBook,
    @inject(PLUGINS) private readonly plugins: PluginTable,
  ) {
    this.commands = [
      builtin('versions', ({ timeoutMs }) => this.versions(timeoutMs)),
      builtin('logs', (given) => this.logs(given)),
      builtin('dump-state', ({ timeoutMs }) => this.dump(timeoutMs)),
    ];
  }

  private async versions(timeoutMs: number | undefined): Promise<unknown> {
    const { clients } = this.kernel.cluster;
    return {
      scheduler: versionsHere(),
      clients: [...clients.values()].map(({ key, versions }) => [key, versions]),
      workers: await this.ask({ what: 'versions' }, timeoutMs),
    };
  }

  private async logs({ workers: named, timeoutMs, ...selection }: Given<'logs'>): Promise<unknown> {
    const answers = await this.ask({ what: 'logs' }, timeoutMs, named);
    const workers = answers.map(([address, answer]) => {
      const { lines } = answer as { readonly lines?: readonly LogLine[] };
      return [address, lines === undefined ? answer : { lines: selectLines(lines, selection) }];
    });
    return { scheduler: selectLines(this.logBook.lines(), selection), workers };
  }

  private async dump(timeoutMs: number | undefined): Promise<unknown> {
    const { kernel, events, logBook } = this;
    // Asked first, described at once: both see about the same moment.
    const asked = this.ask({ what: 'state' }, timeoutMs);
    const scheduler = {
      ...versionsHere(),
      ...describeCluster(kernel.cluster),
      story: kernel.story(),
      plugins: this.plugins.infos,
      events: events.summary(),
      logs: logBook.lines(),
    };
    return { scheduler, workers: await asked };
  }

  private ask(
    request: InspectRequest,
    timeoutMs = ANSWER_TIMEOUT_MS,
    named?: readonly string[],
  ): Promise<Answers<InspectReply>> {
    const { sessions } = this;
    const { cluster } = this.kernel;
    return askWorkers(
      { cluster, sessions },
      workersNamed(cluster, named),
      { method: 'inspect', parameters: { ...request } },
      timeoutMs,
    );
  }
}
