/**
 * What differs between releases of `distributed`, for one peer. A field too many or too few ends a
 * worker, so these follow the releases exactly.
 */
export interface Dialect {
  /** The version that the peer reported. */
  readonly version: string;
  /** 2023.1.1: assignments have a number, which comes back with the answer. */
  readonly hasRunIds: boolean;
  /** Before 2023.2.1: `update_data` takes `report`. */
  readonly hasUpdateDataReport: boolean;
  /** 2023.3.1: one message for many cancelled keys. */
  readonly hasCancelledKeys: boolean;
  /** 2023.3.2: workers hear that a peer is gone. */
  readonly hasRemoveWorker: boolean;
  /** 2023.7.1: workers get the P2P shuffle as a plugin. */
  readonly hasShufflePlugin: boolean;
  /** 2023.6.0: `compute-task` names a span. */
  readonly hasSpanIds: boolean;
  /** 2023.8.1: a task is one pickle; before, it may be a function with its arguments. */
  readonly hasOnlyRunSpecs: boolean;
  /** Before 2023.8.1: `get_data` takes `max_connections`. */
  readonly hasMaxConnections: boolean;
  /** 2024.6.0: answers about a shuffle have a status; before, the specification came bare. */
  readonly hasShuffleStatus: boolean;
  /** 2024.11.0: `get_runspec` is answered with the task; before, with its inputs beside it. */
  readonly hasBareRunSpecs: boolean;
  /** 2024.12.0: a task is an object that knows its inputs (`dask._task_spec.Task`). */
  readonly hasTaskSpecs: boolean;
  /** Before 2025.2.0: `compute-task` says how long it is expected to take. */
  readonly hasDuration: boolean;
  /** 2025.3.0: cancelled keys come with a reason. */
  readonly hasCancelReasons: boolean;
  /** 2025.4.0: the heartbeats of clients are answered. */
  readonly hasClientHeartbeatAnswer: boolean;
}

const known = new Map<string, Dialect>();

/**
 * The dialect of a release. A version that cannot be read (a checkout says `unknown`) counts as the
 * newest.
 */
export function dialectOf(version: string): Dialect {
  let dialect = known.get(version);
  if (dialect === undefined) {
    dialect = makeDialect(version);
    // Peers choose the text; there are never this many releases.
    if (known.size < 100) known.set(version, dialect);
  }
  return dialect;
}

/** The version of `distributed` in the package list that a peer sends when it registers. */
export function versionIn(versions: unknown): string {
  const { packages } = (versions ?? {}) as { packages?: unknown };
  const text = (packages as { distributed?: unknown } | null | undefined)?.distributed;
  return typeof text === 'string' ? text : 'unknown';
}

function makeDialect(version: string): Dialect {
  const since = (year: number, month: number, patch: number): boolean => {
    const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
    if (parts === undefined) return true;
    const [itsYear = 0, itsMonth = 0, itsPatch = 0] = parts;
    if (itsYear !== year) return itsYear > year;
    if (itsMonth !== month) return itsMonth > month;
    return itsPatch >= patch;
  };
  return {
    version,
    hasRunIds: since(2023, 1, 1),
    hasUpdateDataReport: !since(2023, 2, 1),
    hasCancelledKeys: since(2023, 3, 1),
    hasRemoveWorker: since(2023, 3, 2),
    hasShufflePlugin: since(2023, 7, 1),
    hasSpanIds: since(2023, 6, 0),
    hasOnlyRunSpecs: since(2023, 8, 1),
    hasMaxConnections: !since(2023, 8, 1),
    hasShuffleStatus: since(2024, 6, 0),
    hasBareRunSpecs: since(2024, 11, 0),
    hasTaskSpecs: since(2024, 12, 0),
    hasDuration: !since(2025, 2, 0),
    hasCancelReasons: since(2025, 3, 0),
    hasClientHeartbeatAnswer: since(2025, 4, 0),
  };
}
