/**
 * How a failure travels: everything that a reader needs to understand it, nothing that needs the
 * code which threw it. The scheduler carries it without looking inside.
 */
export interface ErrorPayload {
  /** Class of the error (`TypeError`), or `NonError` when something else was thrown. */
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Stable code (`ERR_…`, `ENOENT`), where there is one. */
  readonly code?: string;
  readonly cause?: ErrorPayload;
  /** Further own properties that could be serialised. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** How to compute a task with a JavaScript worker: a function that the worker imports. */
export interface FunctionSpec {
  /** URL of the module that called `defineTasks`. */
  readonly module: string;
  /** Name under which `defineTasks` received the function. */
  readonly name: string;
  /** Hash of the module's source as the client has it; a worker with another one refuses. */
  readonly version: string;
  /** Serialised array of arguments in which each result of another task is a placeholder. */
  readonly args: Uint8Array;
  /**
   * Short hash of function and arguments, for a key that its author chose. The scheduler refuses a task whose key
   * it knows with another definition. Default: the key follows from the definition, so none is needed.
   */
  readonly definition?: string;
  /** When it is tried again, by the thread that runs it. Default: never. */
  readonly retry?: RetrySpec;
  /** Where its result is kept beyond the life of the cluster. Default: nowhere. */
  readonly persist?: PersistSpec;
}

/** Where a result is kept. */
export interface PersistSpec {
  readonly store: StoreSpec;
  /** Hash of what the result follows from: function, arguments, and the same of each input. */
  readonly key: string;
  /** The store has it: it is read, and the function is not called. Default false. */
  readonly isKept?: boolean;
}

/** A part of a bucket of S3, or of what speaks its protocol. */
export interface BucketSpec {
  readonly bucket: string;
  /** What the names of objects begin with, such as `results/`. Default: nothing. */
  readonly prefix?: string;
  /** Default: of the environment of each process (`AWS_REGION`). */
  readonly region?: string;
  /** URL of a server other than that of AWS. */
  readonly endpoint?: string;
  /** The bucket is part of the path, not of the host: most other servers need it. Default false. */
  readonly forcePathStyle?: boolean;
}

/** A store of results: a folder, a bucket, or what the `createResultStore` of a module makes. */
export type StoreSpec =
  | { readonly folder: string; readonly maxBytes?: number }
  | { readonly s3: BucketSpec }
  | { readonly module: string; readonly options?: unknown };

/** When a function that has failed is called again. */
export interface RetrySpec {
  /** Upper bound of further calls. */
  readonly times: number;
  /** Milliseconds before the first of them; each further wait is `factor` times as long. */
  readonly backoffMs: number;
  readonly factor: number;
  /** From 0 to 1: the share of a wait by which it may be shorter; the key and the attempt decide. */
  readonly jitter: number;
  /** Says of an error whether it is worth another call. Default: each is. */
  readonly retryIf?: Omit<FunctionSpec, 'args' | 'definition' | 'retry' | 'persist'>;
}
