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
}
