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
  /** Set by a nanny for the process that it looks after. */
  readonly supervised?: boolean;
  /** Set by a local cluster: the rest of the configuration. */
  readonly settings?: string;
}
