import type { MemoryMeasure, OptionsOf } from '../../core/api/index.ts';
import { PythonException } from './wire/py-errors.ts';

const text = { type: 'string' } as const;
const milliseconds = (minimum: number, byDefault: number) =>
  ({ type: 'number', minimum, default: byDefault }) as const;

export const DASK_OPTIONS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    /** The address at which Dask's workers, nannies and clients reach the scheduler. Port 0 chooses a free one. */
    address: { type: 'string', default: 'tcp://127.0.0.1:8786' },
    /** Name of a network interface, such as `eth0`, whose address replaces the host of `address`. */
    interface: text,
    /**
     * The address that is announced to peers which cannot reach `address` itself: `tcp://host:port`,
     * or only a host, with the port of `address`.
     */
    contactAddress: text,
    /** A file for Dask's `--scheduler-file`; it is written at the start and deleted at the end. */
    schedulerFile: text,
    /**
     * The Python that reads graphs; it needs the packages that clients use. It starts with the scheduler.
     * Default: one that is found and has the version of the clients, started for the first of them.
     */
    python: text,
    /** Milliseconds that reading one graph may take. */
    pythonTimeoutMs: milliseconds(1000, 600_000),
    /** The number of Pythons that may read graphs at the same time, each for one client. */
    pythonProcesses: { type: 'integer', minimum: 1, default: 4 },
    /** Bytes that each of them may use; default: half of the memory of the machine or container. */
    pythonMemoryBytes: { type: 'integer', minimum: 2 ** 28 },
    /**
     * True when clients may run Python of theirs beside the scheduler: `run_on_scheduler`, plugins of the
     * scheduler, `performance_report`.
     */
    schedulerPython: { type: 'boolean', default: true },
    /**
     * Modules and files of Python whose `dask_setup(scheduler)` runs in that process before clients can
     * connect; `dask_teardown(scheduler)` when the scheduler closes.
     */
    preload: { type: 'array', items: text, default: [] },
    /** Arguments for them: one list for all, or one for each. */
    preloadArgv: { type: 'array', default: [] },
    /**
     * Port of the page that clients link to as the dashboard; any when it is taken or 0, none when -1.
     * Default: 8787, and -1 with a `tls://` address. When it is named there, the page is encrypted as well
     * and wants the certificate of its reader.
     */
    statusPort: { type: 'integer', minimum: -1, maximum: 65_535 },
    /** Host of that page. Default: that of `address`. Beyond loopback it shows figures only, unless it has a token. */
    statusHost: text,
    /** Each request to that page has to carry it, as for the plugin `dashboard`. */
    statusToken: { type: 'string', minLength: 16 },
    /**
     * The folder in which clients may have the state of the cluster written (`dump_cluster_state` to an URL), with the folders
     * below.
     * Default: the current folder of the scheduler.
     */
    dumpFolder: text,
    /** Operations that are refused, by Dask's names, such as `run_function`. */
    blockedHandlers: { type: 'array', items: text, default: [] },
    /** Milliseconds for which a lease of a client lives that does not say it (before 2024.9). */
    leaseTimeoutMs: milliseconds(10, 30_000),
    /** Milliseconds between two looks for leases that have timed out. */
    leaseCheckIntervalMs: milliseconds(10, 1_000),
    /** Milliseconds that a computation shall take, for `adaptive_target` without a duration. */
    targetDurationMs: milliseconds(1, 5_000),
    /** Connections that wait to be accepted. */
    socketBacklog: { type: 'integer', minimum: 1, maximum: 1_000_000, default: 2048 },
    /** Milliseconds for a connection to a worker or nanny. */
    connectTimeoutMs: milliseconds(1, 30_000),
    /**
     * Certificates for `tls://` addresses, as file names. Default: those of Dask's own configuration
     * (`distributed.comm.tls`), from its files and the environment.
     */
    tls: {
      type: 'object',
      additionalProperties: false,
      properties: {
        caFile: text,
        cert: text,
        key: text,
        ciphers: text,
        minVersion: { type: 'string', enum: ['1.2', '1.3'] },
        maxVersion: { type: 'string', enum: ['1.2', '1.3'] },
      },
    },
  },
} as const;

export type DaskOptions = OptionsOf<typeof DASK_OPTIONS_SCHEMA>;

/** Dask's names of the measures of memory, of all releases, and what they are here. */
export const MEASURES = {
  process: 'process',
  managed: 'managedTotal',
  managed_in_memory: 'managed',
  managed_spilled: 'spilled',
  spilled: 'spilled',
  unmanaged: 'unmanaged',
  unmanaged_old: 'unmanagedOld',
  unmanaged_recent: 'unmanagedRecent',
  optimistic: 'optimistic',
} as const satisfies Readonly<Record<string, MemoryMeasure>>;

/** @throws PythonException `ValueError` naming those that there are */
export function measureNamed(name: unknown): MemoryMeasure {
  const known = Object.keys(MEASURES);
  if (typeof name === 'string' && known.includes(name)) {
    return MEASURES[name as keyof typeof MEASURES];
  }
  throw new PythonException('ValueError', `measure must be one of ${known.join(', ')}`);
}
