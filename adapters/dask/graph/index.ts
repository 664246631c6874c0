/** Graphs of clients of Dask, of all versions. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { removePrivateFolder } from '../../log/private-folder.ts';
import {
  assembleGraph,
  type GraphContext,
  type GraphMessage,
  isMaterialized,
  type UnpackedGraph,
  unpackMaterialized,
} from './materialized.ts';
import {
  findPythons,
  type HelperAnswer,
  type HelperOptions,
  HelperPool,
  nothingWorksWithout,
  type PythonCommand,
} from './python-helper.ts';

export type { GraphMessage } from './materialized.ts';
export { defaultMemoryBytes, isNamed, pythonCommands } from './python-helper.ts';
export type { HelperAnswer, HelperOptions, PythonCommand, PythonFailure } from './python-helper.ts';
export {
  isCallSpec,
  type CallSpec,
  type GraphContext,
  type UnpackedGraph,
} from './materialized.ts';

/** Fields of a client's message that describe the tasks; the rest need not go to Python. */
const GRAPH_FIELDS = ['hlg', 'graph_header', 'graph_frames', 'expr_ser', 'keys', 'annotations'];

/** Reads what clients submit, with the help of Python where it must be. */
export class GraphUnpacker {
  private readonly helper: HelperPool;
  /** The folder of the files of clients. */
  private folder: Promise<string> | undefined;
  private folderName: string | undefined;

  constructor(
    private readonly options: HelperOptions,
    private readonly context: GraphContext,
  ) {
    this.helper = new HelperPool(options);
  }

  /** Versions of python, dask and distributed that the helper has; empty before it was needed. */
  get versions(): Readonly<Record<string, unknown>> {
    return this.helper.versions;
  }

  /**
   * Versions of the packages that Dask compares between its peers, as the helper has them.
   * @throws YardmasterError as `PythonHelper.ask`
   */
  async packages(): Promise<Readonly<Record<string, unknown>>> {
    const { packages } = await this.askOne({ op: 'packages' });
    return packages as Readonly<Record<string, unknown>>;
  }

  /** Process id of the helper, while there is one. */
  get pid(): number | undefined {
    return this.helper.pid;
  }

  /** Starts the helper before there is any client. When that fails, it is tried again when it is needed. */
  start(): void {
    this.helper.prepare();
  }

  /**
   * Starts the helper for a client whose graphs need it, so that the first one does not wait for that.
   * @param version - `distributed` of the client
   */
  prepare(version: string): void {
    const [year = 0, month = 0] = version.split('.').map(Number);
    if (year > 2023 || (year === 2023 && month >= 4)) this.helper.prepare(version);
  }

  /**
   * Reads the graph of an `update-graph-hlg` or `update-graph`. The answer is there at once when
   * Python is not needed. Several graphs may be on their way; they are answered in their order.
   * @throws YardmasterError as `PythonHelper.ask`, and `ERR_PROTOCOL`
   */
  unpack(message: GraphMessage): UnpackedGraph | Promise<UnpackedGraph> {
    if (isMaterialized(message)) return unpackMaterialized(message, this.context);
    return this.unpackWithPython(message);
  }

  /**
   * Describes an object of Python: its type, and those of the attributes that it has. They must be plain
   * data.
   * @param value - an opaque object
   */
  async inspect(
    value: unknown,
    attributes: readonly string[],
  ): Promise<{ type: string; module: string; attributes: Readonly<Record<string, unknown>> }> {
    const message = await this.askOne({ op: 'inspect', value, attributes });
    return message as Awaited<ReturnType<GraphUnpacker['inspect']>>;
  }

  /**
   * The subject of a progress bar's function; `bar` is undefined for any other function.
   * @param setup - its pickle
   */
  async feed(setup: Uint8Array): Promise<{
    bar?: 'single' | 'multiple';
    keys: readonly unknown[];
    complete: boolean;
  }> {
    const message = await this.askOne({ op: 'feed', setup });
    return message as unknown as Awaited<ReturnType<GraphUnpacker['feed']>>;
  }

  /** A run of a P2P shuffle: where its output partitions go, and what the workers want to see of it. */
  async shuffleRun(request: ShuffleRunRequest): Promise<ShuffleRun> {
    const { barrier, spec, workers, placed, runId, spanId } = request;
    const message = await this.askOne({
      op: 'shuffle-run',
      ...(spec === undefined ? { task: barrier } : { spec }),
      workers,
      placed,
      run_id: runId,
      span_id: spanId ?? null,
    });
    return {
      workerFor: message['worker_for'] as ShuffleRun['workerFor'],
      runSpec: message['run_spec'],
    };
  }

  /** Warns when no Python has dask and distributed, with what will not work. */
  async checkPythons(): Promise<void> {
    const { commands, log } = this.options;
    const found = await findPythons(commands);
    if (found.length === 0) log.warn({ commands }, nothingWorksWithout(commands));
  }

  /**
   * The Python that reads graphs, which is started for that if there is none yet.
   * @throws YardmasterError `ERR_CONNECT` when there is none
   */
  pythonCommand(): Promise<PythonCommand> {
    return this.helper.command();
  }

  /** The folder of files of clients, from which later graphs may import. It ends with the scheduler. */
  uploads(): Promise<string> {
    this.folder ??= mkdtemp(join(tmpdir(), 'yardmaster-uploads-')).then((name) => {
      this.folderName = name;
      return name;
    });
    return this.folder;
  }

  /**
   * Gives the readers a file of a client, which later graphs may import.
   * @param plugin - pickle of the plugin that carries it
   * @returns which file; undefined when it is another plugin, which was not run
   * @throws YardmasterError as `PythonHelper.ask`
   */
  async upload(plugin: Uint8Array): Promise<UploadedFile | undefined> {
    const folder = await this.uploads();
    const { uploaded, filename, load } = await this.askOne({ op: 'upload', plugin, folder });
    if (uploaded !== true) return undefined;
    const file = { filename: String(filename), load: load === true };
    await this.importFile(file);
    return file;
  }

  /** Has all readers import a file that lies in the folder, also when they have imported it before. */
  async importFile({ filename, load }: UploadedFile): Promise<void> {
    if (!load) return;
    const folder = await this.uploads();
    await this.helper.askAll({ op: 'import', filename, folder });
  }

  /** Ends the helper; what is on its way fails. */
  close(): void {
    this.helper.close();
    const { folderName } = this;
    if (folderName !== undefined) removePrivateFolder(folderName);
  }

  private async unpackWithPython(message: GraphMessage): Promise<UnpackedGraph> {
    const request: Record<string, unknown> = { op: 'unpack' };
    if (this.folder !== undefined) request['folder'] = await this.folder;
    for (const field of GRAPH_FIELDS) {
      if (message[field] !== undefined) request[field] = message[field];
    }
    return assembleGraph(message, await this.helper.ask(request), this.context);
  }

  private async askOne(request: GraphMessage): Promise<Readonly<Record<string, unknown>>> {
    const [answer] = await this.helper.ask(request);
    return (answer as HelperAnswer).message;
  }
}

/** A file of a client, in the folder for them. */
export interface UploadedFile {
  readonly filename: string;
  /** It is a module, which is imported at once. */
  readonly load: boolean;
}

/** A P2P shuffle that begins, or begins anew. */
interface ShuffleRunRequest {
  /** Run specification of its barrier task, as it came with the graph; not needed with `spec`. */
  readonly barrier?: unknown;
  /** The specification of the shuffle of a worker before 2024.11. */
  readonly spec?: unknown;
  /** Addresses of workers that may get partitions; the first gets the first. */
  readonly workers: readonly string[];
  /** Output partitions whose workers are settled already. */
  readonly placed: readonly (readonly [partition: unknown, worker: string])[];
  /** Higher than those of all runs before. */
  readonly runId: number;
  readonly spanId?: unknown;
}

/** See {@link GraphUnpacker.shuffleRun}. */
interface ShuffleRun {
  readonly workerFor: readonly (readonly [partition: unknown, worker: string])[];
  /** Opaque, for `run_spec` of the answer to a worker. */
  readonly runSpec: unknown;
}
