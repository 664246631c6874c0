import { YardmasterError, type Timer } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import {
  PythonHelper,
  type HelperAnswer,
  type HelperOptions,
  type PythonCommand,
} from './python-helper.ts';

/** How long a request waits for a process that is busy before another one is started, in milliseconds. */
const PATIENCE_MS = 200;
/** A process beyond the first ends when it has had nothing to do for this long, in milliseconds. */
const IDLE_MS = 60_000;

/** Processes that may read at the same time unless the options say otherwise. */
const PROCESSES_MAX = 4;

type Message = Readonly<Record<string, unknown>>;

interface Request {
  readonly message: Message;
  readonly resolve: (answers: readonly HelperAnswer[]) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Several Python processes that read graphs: each reads one at a time, so that a graph which takes long
 * delays at most those that find all processes busy. The first process stays; others come and go.
 */
export class HelperPool {
  private readonly first: PythonHelper;
  private readonly others = new Map<PythonHelper, Timer | undefined>();
  private readonly busy = new Set<PythonHelper>();
  private readonly waiting: Request[] = [];
  private patience: Timer | undefined;
  private isClosed = false;

  constructor(private readonly options: HelperOptions) {
    this.first = new PythonHelper(options);
  }

  get versions(): Message {
    return this.first.versions;
  }

  /** Process id of the first. */
  get pid(): number | undefined {
    return this.first.pid;
  }

  /** How many processes there are. */
  get size(): number {
    return this.others.size + 1;
  }

  /** As {@link PythonHelper.prepare}, for the first. */
  prepare(version?: string): void {
    this.first.prepare(version);
  }

  /**
   * Asks a process that is free, or the next that becomes so.
   * @throws YardmasterError as {@link PythonHelper.ask}
   */
  ask(message: Message): Promise<readonly HelperAnswer[]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ message, resolve, reject });
      this.assign();
    });
  }

  /**
   * Asks every process that is running. Those that start later are not asked. Resolves when all have
   * answered that were free; a busy one answers before its next graph, and its failure is logged.
   */
  async askAll(message: Message): Promise<void> {
    const running = [this.first, ...this.others.keys()].filter(({ pid }) => pid !== undefined);
    const answers: Promise<unknown>[] = [];
    for (const helper of running) {
      const answer = helper.ask(message);
      if (this.busy.has(helper)) answer.catch((error: unknown) => this.warn(message, error));
      else answers.push(answer);
    }
    await Promise.all(answers);
  }

  /**
   * The Python that reads graphs: the one that the options name, or else the one that is found.
   * @throws YardmasterError `ERR_CONNECT` when there is none
   */
  async command(): Promise<PythonCommand> {
    const [only, ...others] = this.options.commands;
    if (only !== undefined && others.length === 0) return only;
    if (this.first.command === undefined) await this.ask({ op: 'packages' });
    return this.first.command ?? (only as PythonCommand);
  }

  /** Ends all; what is not answered yet fails. */
  close(): void {
    this.isClosed = true;
    this.patience?.cancel();
    for (const timer of this.others.values()) timer?.cancel();
    for (const helper of [this.first, ...this.others.keys()]) helper.close();
    for (const { reject } of this.waiting.splice(0)) {
      reject(new YardmasterError('ERR_CLOSED', 'the scheduler closes'));
    }
  }

  private warn({ op }: Message, err: unknown): void {
    this.options.log.warn({ err, op }, `a Python that reads graphs failed at ${String(op)}`);
  }

  private assign(): void {
    for (;;) {
      const free = this.isClosed ? this.first : this.free();
      const request = free === undefined ? undefined : this.waiting.shift();
      if (free === undefined || request === undefined) break;
      inBackground(this.serve(free, request), 'a request of the Python helper was not served');
    }
    if (this.waiting.length > 0) this.waitForAnother();
    else {
      this.patience?.cancel();
      this.patience = undefined;
    }
  }

  private free(): PythonHelper | undefined {
    if (!this.busy.has(this.first)) return this.first;
    for (const helper of this.others.keys()) if (!this.busy.has(helper)) return helper;
    return undefined;
  }

  private async serve(helper: PythonHelper, { message, resolve, reject }: Request): Promise<void> {
    this.busy.add(helper);
    if (this.others.has(helper)) this.others.get(helper)?.cancel();
    await helper.ask(message).then(resolve, reject);
    this.busy.delete(helper);
    if (this.isClosed) return;
    if (this.others.has(helper)) this.endWhenIdle(helper);
    this.assign();
  }

  private waitForAnother(): void {
    const { clock, processesMax = PROCESSES_MAX } = this.options;
    if (this.patience !== undefined || this.size >= processesMax || this.isClosed) return;
    this.patience = clock.setTimer(PATIENCE_MS, () => {
      this.patience = undefined;
      const { command } = this.first;
      const commands = command === undefined ? this.options.commands : [command];
      this.others.set(new PythonHelper({ ...this.options, commands }), undefined);
      this.assign();
    });
  }

  private endWhenIdle(helper: PythonHelper): void {
    const timer = this.options.clock.setTimer(IDLE_MS, () => {
      this.others.delete(helper);
      helper.close();
    });
    this.others.set(helper, timer);
  }
}
