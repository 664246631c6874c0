/** Flags of `worker`. */
export interface WorkerFlags {
  readonly config?: string;
  readonly threads?: number;
  readonly name?: string;
  readonly resources?: Readonly<Record<string, number>>;
  readonly memoryLimit?: number;
  readonly memory?: Readonly<Record<string, number | string | boolean>>;
  readonly spillFolder?: string;
  readonly ready?: 'priority' | 'lifo';
  readonly host?: string;
  readonly killGrace?: number;
  readonly nanny?: boolean;
  /** True: at Node's own port. */
  readonly inspect?: number | true;
  /** Relative to the current folder. */
  readonly allowModules?: readonly string[];
  readonly codeRoot?: string;
  /** Variables of the environment that the worker keeps. */
  readonly env?: readonly string[];
  /** Set by a nanny for the process that it looks after. */
  readonly supervised?: boolean;
  /** Set by a local cluster: the rest of the configuration. */
  readonly settings?: string;
}
