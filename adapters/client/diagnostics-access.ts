import { open, writeFile } from 'node:fs/promises';
import { messageOf } from '../../core/api/errors.ts';
import { type LogLine, type RecordingInfo, VERSION } from '../../core/api/index.ts';
import { TEXT } from '../../core/shared/schema.ts';
import type { PackedHistory } from '../report/history.ts';
import { ClusterAccess } from './cluster-access.ts';
import { checkOptions } from './options.ts';

/** Versions by the name of what has them: `yardmaster`, `node`. */
export type Versions = Readonly<Record<string, string>>;

/** A worker that did not answer, and the reason. */
export interface UnansweredWorker {
  readonly error: string;
}

/** The versions of all processes of a cluster. */
export interface ClusterVersions {
  /** Of this process. */
  readonly client: Versions;
  readonly scheduler: Versions;
  /** Versions of each connected client, by its key, as the client reported them. */
  readonly clients: ReadonlyMap<string, Versions>;
  /** By address. */
  readonly workers: ReadonlyMap<string, Versions | UnansweredWorker>;
}

/** The newest lines of all logs of a cluster, oldest first. */
export interface ClusterLogs {
  readonly scheduler: readonly LogLine[];
  /** By address. */
  readonly workers: ReadonlyMap<string, readonly LogLine[] | UnansweredWorker>;
}

/** For how long to wait for workers. */
export interface InspectOptions {
  /** Milliseconds for each worker. One that is silent for longer has an `error`. Default 10 000. */
  readonly timeoutMs?: number;
}

/** Which lines of the logs to get. */
export interface LogOptions extends InspectOptions {
  /** Addresses, names or hosts. Default: all workers. */
  readonly workers?: readonly string[];
  /** The newest lines of each log, at most this many. Default: all that are kept. */
  readonly count?: number;
  /** Only lines of this moment and later, by the clock of their process; a number is milliseconds. */
  readonly since?: Date | number;
  /** And what is more serious. Default `info`. */
  readonly level?: 'info' | 'warn' | 'error';
  /** The newest line first, as with Dask. Default false. */
  readonly newestFirst?: boolean;
}

/** A recording of the scheduler that has begun. */
export interface ClusterRecording extends RecordingInfo {
  /**
   * Ends it, also when another client has begun it.
   * @throws RemoteError `ERR_LOG` when nothing is being recorded any more, `ERR_ACCESS`
   */
  stop(): Promise<RecordingInfo>;
}

/** The part of a client that looks into the processes of the cluster. */
export class DiagnosticsAccess extends ClusterAccess {
  /**
   * Records all that happens to the scheduler from here on, for `yardmaster replay`, into the folder that its
   * operator has named (`--recordings`). Needs the key of an admin where there are keys.
   * @param name - of the file: letters, digits, dots, dashes. Default: the time
   * @throws RemoteError `ERR_CONFIG` when the operator has named no folder, `ERR_LOG` when the scheduler is being
   *   recorded already or the file cannot be written, `ERR_PROTOCOL` for a name that is none, `ERR_ACCESS`
   */
  async record(name?: string): Promise<ClusterRecording> {
    const begun = await this.command<RecordingInfo>(
      'start-recording',
      name === undefined ? {} : { name },
    );
    return { ...begun, stop: () => this.command<RecordingInfo>('stop-recording') };
  }

  /** Versions of the scheduler, of the workers and of the clients. */
  async getVersions(options: InspectOptions = {}): Promise<ClusterVersions> {
    const { scheduler, clients, workers } = await this.command<{
      scheduler: Versions;
      clients: [string, Versions][];
      workers: [string, Versions | UnansweredWorker][];
    }>('versions', options);
    const client = { yardmaster: VERSION, node: process.versions.node };
    return { client, scheduler, clients: new Map(clients), workers: new Map(workers) };
  }

  /**
   * The newest log lines of scheduler and workers, from `info` up; each keeps a thousand lines.
   * @throws RemoteError `ERR_PROTOCOL` for options that do not exist, `ERR_NO_WORKER`
   */
  async getLogs({ since, ...rest }: LogOptions = {}): Promise<ClusterLogs> {
    const options = since === undefined ? rest : { ...rest, sinceMs: Number(since) };
    const { scheduler, workers } = await this.command<{
      scheduler: LogLine[];
      workers: [string, { lines: LogLine[] } | UnansweredWorker][];
    }>('logs', options);
    const lines = workers.map(
      ([address, answer]) => [address, 'lines' in answer ? answer.lines : answer] as const,
    );
    return { scheduler, workers: new Map(lines) };
  }

  /**
   * Writes everything that scheduler and workers know of tasks, data and each other into a file of
   * this machine, as JSON, for people and for bug reports. Values and arguments are not in it. Workers
   * that do not answer have an `error` in it.
   *
   * @returns addresses of the workers that did not answer
   */
  async dumpClusterState(path: string, options: InspectOptions = {}): Promise<readonly string[]> {
    const { scheduler, workers } = await this.command<{
      scheduler: object;
      workers: [string, object][];
    }>('dump-state', options);
    const dump = { scheduler, workers: Object.fromEntries(workers) };
    await writeFile(path, `${JSON.stringify(dump, infinityAsText, 1)}\n`);
    return workers.filter(([, answer]) => 'error' in answer).map(([address]) => address);
  }

  /**
   * Runs `work`, and writes what the cluster did meanwhile into an HTML file of this machine: critical path, idle
   * workers, where the time went, a flame graph of the calls of tasks, which workers sample every 20 ms meanwhile, and
   * what could be better. Tasks of other clients in that time are in it, too. The scheduler keeps the runs until the
   * work has ended: 200 000 of them, and the number of those beyond.
   *
   * When the work fails, the report is written all the same. When the work has succeeded and the report cannot be had, as
   * after a restart of the scheduler, a warning says so.
   *
   * @returns what the work returns
   * @throws what the work throws; before the work, RemoteError when the scheduler cannot collect, or an error of the file
   * @example
   * const total = await client.report('report.html', async () => client.gather(client.reduce(add, parts)));
   */
  async report<T>(
    path: string,
    work: () => T | Promise<T>,
    options: { readonly title?: string } = {},
  ): Promise<T> {
    checkOptions('client.report', options, { title: TEXT });
    // A file that cannot be written is better known before the work; what it holds stays until the report replaces it.
    await (await open(path, 'a')).close();
    const id = await this.command<number>('report.start');
    let result: T;
    try {
      result = await work();
    } catch (error) {
      // What the work has thrown is what matters.
      await this.writeReport(path, id, options).catch(() => undefined);
      throw error;
    }
    await this.writeReport(path, id, options).catch((error: unknown) => {
      process.emitWarning(`${path} was not written: ${messageOf(error)}`, 'YardmasterClient');
    });
    return result;
  }

  private async writeReport(
    path: string,
    id: number,
    { title = path.replace(/^.*[/\\]/, '') }: { readonly title?: string },
  ): Promise<void> {
    const packed = await this.command<PackedHistory>('report.stop', { id });
    const { reportOf, unpackHistory } = await import('../report/index.ts');
    const { html } = await import('../report/report-html.ts');
    const report = reportOf(unpackHistory(packed));
    await writeFile(path, await html(report, { title, createdAtMs: Date.now() }));
  }
}

/** JSON has no word for it. */
function infinityAsText(_name: string, value: unknown): unknown {
  return value === Infinity ? 'Infinity' : value;
}
