import type { Channel } from '../api/channel.ts';
import { YardmasterError } from '../api/errors.ts';
import type { CommandHandler } from '../api/plugin.ts';
import { VERSION } from '../api/version.ts';
import { isPlainObject } from '../config/prepare.ts';
import type { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { InspectReply, InspectRequest, LogLine } from '../messages/protocol.ts';
import { describeCluster } from './describe-cluster.ts';
import type { EventLog } from './event-log.ts';
import type { LogBook } from './log-book.ts';
import type { PluginInfo } from './scheduler.ts';

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

/** What all workers answered, by address; `error` where one did not. */
type Answers = readonly (readonly [
  address: string,
  answer: Readonly<Record<string, unknown>> | { readonly error: string },
])[];

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
      workers: await this.askWorkers({ what: 'versions' }, timeoutMs),
    };
  }

  private async logs(given: unknown): Promise<unknown> {
    const timeoutMs = timeoutIn('logs', given);
    const { count } = (given ?? {}) as { count?: unknown };
    if (count !== undefined && (!Number.isInteger(count) || (count as number) < 1)) {
      throw wrong('logs', 'count', 'a whole number, at least 1');
    }
    const countMax = count as number | undefined;
    const limit = countMax === undefined ? {} : { count: countMax };
    const workers = await this.askWorkers({ what: 'logs', ...limit }, timeoutMs);
    const scheduler: readonly LogLine[] = this.scope.logBook.lines(countMax);
    return { scheduler, workers };
  }

  private async dump(timeoutMs: number): Promise<unknown> {
    const { kernel, events, logBook } = this.scope;
    // Asked first, described at once: both see about the same moment.
    const asked = this.askWorkers({ what: 'state' }, timeoutMs);
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

  private askWorkers(request: InspectRequest, timeoutMs: number): Promise<Answers> {
    const { workersByRank } = this.scope.kernel.cluster;
    return Promise.all(
      workersByRank.map(async ({ address }) => {
        try {
          const channel = this.scope.channelOf(address);
          if (channel === undefined) throw new Error('it is not connected');
          const parameters = { ...request };
          return [
            address,
            await channel.request<InspectReply>('inspect', parameters, timeoutMs),
          ] as const;
        } catch (error) {
          return [address, { error: (error as Error).message }] as const;
        }
      }),
    );
  }
}

/** Of this process. */
export function versionsHere(): { readonly yardmaster: string; readonly node: string } {
  return { yardmaster: VERSION, node: process.versions.node };
}

function timeoutIn(command: string, given: unknown): number {
  if (given === undefined) return ANSWER_TIMEOUT_MS;
  if (!isPlainObject(given)) throw wrong(command, 'parameters', 'an object');
  const { timeoutMs = ANSWER_TIMEOUT_MS } = given;
  if (Number.isFinite(timeoutMs) && (timeoutMs as number) > 0) return timeoutMs as number;
  throw wrong(command, 'timeoutMs', 'milliseconds above 0');
}

function wrong(command: string, field: string, what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "${command}" wants ${what} as ${field}`, {
    command,
    field,
  });
}
