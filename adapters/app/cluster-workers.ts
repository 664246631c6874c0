/** A worker of a local cluster, wherever it lives. */
export interface ClusterWorker {
  readonly name: string;
  /** Id of its process, if the process is separate. */
  readonly pid?: number | undefined;
  /** Resolves when it is gone, however it went. */
  readonly ended: Promise<void>;
  /** Why it is gone. */
  deathError(): Error;
  /** Ends it in good order. */
  close(): Promise<void>;
}

/** Starts one more worker; it may not be registered yet when the promise resolves. */
export type WorkerStarter = (name: string) => Promise<ClusterWorker>;
