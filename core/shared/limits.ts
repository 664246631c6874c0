/** The places of modules that a worker loads because a client names them. */
export interface ModuleLimit {
  /** Real paths of the folders and files. */
  readonly folders: readonly string[];
  /** The project in which modules are looked for that clients name relative to theirs. Real path. */
  readonly codeRoot: string;
  /**
   * @param module - a URL, or an absolute path
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  check(module: string): void;
  /**
   * Refuses to call what a module exports without having registered it as a task, where the module belongs to a package that
   * is not permitted by itself: such functions may do whatever their caller wants, such as to import a path.
   * @param module - a URL, or an absolute path, that {@link check} permits
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  checkExports(module: string): void;
}

/** The largest event that a client, worker or task logs: all topics are kept in the memory of the scheduler. */
export const EVENT_BYTES_MAX = 1024 * 1024;

/** Bytes from which on a transfer tells of the bandwidth. Dask: the same. */
export const MEASURED_BYTES_MIN = 1_000_000;

/** A client, or a peer of Dask, that has more than this to read is disconnected. */
export const UNREAD_BYTES_MAX = 1024 * 1024 * 1024;
