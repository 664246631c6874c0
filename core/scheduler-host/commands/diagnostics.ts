import { wrongParameter } from '../../host/wrong-parameter.ts';
import type { Channel } from '../../api/channel.ts';
import type { CommandHandler } from '../../api/plugin.ts';
import { versionsHere } from '../../host/versions.ts';
import { isPlainObject } from '../../config/prepare.ts';
import type { SchedulerKernel } from '../../kernel/scheduler-kernel.ts';
import type { InspectReply, InspectRequest, LogLine } from '../../messages/protocol.ts';
import { type Answers, askParameters, askWorkers, workersNamed } from './ask-workers.ts';
import { describeCluster } from './describe-cluster.ts';
import type { EventLog } from '../event-log.ts';
import type { LogBook } from '../../host/log-book.ts';
import { logSelectionIn, selectLines } from '../../host/log-selection.ts';
import type { PluginInfo } from '../../plugin-host/plugin-info.ts';

/** A worker that has not answered within this is told of as silent. */
const ANSWER_TIMEOUT_MS = 10_000;

/** What diagnostics look at. */
export interface DiagnosticsScope {
  readonly kernel: SchedulerKernel;
  readonly events: EventLog;
  readonly logBook: LogBook;
  plugins(): readonly PluginInfo[];
  /** The connection of a worker. */
  channelOf(address: string): Channel | undefined;
}

/**
 * Commands that look into all processes of the cluster at once. A worker that does not answer in time
 * holds up nobody: the others are told of, and what is the matter with it.
 */
export class Diagnostics {
  readonly commands: ReadonlyMap<string, CommandHandler>;

  constructor(private readonly scope: DiagnosticsScope) {
    this.commands = new Map<string, CommandHandler>([
      ['versions', (given) => this.versions(timeoutIn('versions', given))],
      ['logs', (given) => this.logs(given)],
      ['dump-state', (given) => this.dump(timeoutIn('dump-state', given))],
    ]);
  }

  private async versions(timeoutMs: number): Promise<unknown> {
    const { clients } = this.scope.kernel.cluster;
    return {
      scheduler: versionsHere(),
      clients: [...clients.values()].map(({ key, versions }) => [key, versions]),
      workers: await this.ask({ what: 'versions' }, timeoutMs),
    };
  }

  private async logs(given: unknown): Promise<unknown> {
    const timeoutMs = timeoutIn('logs', given);
    const selection = logSelectionIn(given);
    const { workers: named } = askParameters('logs', given, timeoutMs);
    const answers = await this.ask({ what: 'logs' }, timeoutMs, named);
    const workers = answers.map(([address, answer]) => {
      const { clientQueues: clientQueues } = answer as {
        readonly clientQueues?: readonly LogLine[];
      };
      return [
        address,
        clientQueues === undefined ? answer : { lines: selectLines(clientQueues, selection) },
      ];
    });
    return { scheduler: selectLines(this.scope.logBook.lines(), selection), workers };
  }

  private async dump(timeoutMs: number): Promise<unknown> {
    const { kernel, events, logBook } = this.scope;
    // Asked first, described at once: both see about the same moment.
    const asked = this.ask({ what: 'state' }, timeoutMs);
    const scheduler = {
      ...versionsHere(),
      ...describeCluster(kernel.cluster),
      story: kernel.story(),
      plugins: this.scope.plugins(),
      events: events.summary(),
      logs: logBook.lines(),
    };
    return { scheduler, workers: await asked };
  }

  private ask(
    request: InspectRequest,
    timeoutMs: number,
    named?: readonly string[],
  ): Promise<Answers<InspectReply>> {
    const { scope } = this;
    const { cluster } = scope.kernel;
    return askWorkers(
      { cluster, channelOf: (address) => scope.channelOf(address) },
      workersNamed(cluster, named),
      { method: 'inspect', parameters: { ...request } },
      timeoutMs,
    );
  }
}

function timeoutIn(command: string, given: unknown): number {
  if (given === undefined) return ANSWER_TIMEOUT_MS;
  if (!isPlainObject(given)) throw wrongParameter(command, 'parameters', 'an object');
  const { timeoutMs = ANSWER_TIMEOUT_MS } = given;
  if (Number.isFinite(timeoutMs) && (timeoutMs as number) > 0) return timeoutMs as number;
  throw wrongParameter(command, 'timeoutMs', 'milliseconds above 0');
}
