import { type Logger, YardmasterError } from '../../core/api/index.ts';
import type { ConfigLayers } from '../../core/config/layers.ts';
import { type DaskSettings, readDaskSettings } from '../app/dask-settings/index.ts';
import {
  checkDaskFlags,
  type DaskFlags,
  fromHere,
  type Listening,
  listeningOf,
  preloadsOf,
  protocolOf,
  statusOptionsOf,
} from './flags/dask-flags.ts';
import type { LogFlags } from './logger.ts';

/** Flags of `scheduler`. */
export interface SchedulerFlags extends LogFlags, DaskFlags {
  readonly config?: string;
  /** Also `host:port`, or a URI such as `tcp://0.0.0.0:8786`. */
  readonly host?: string;
  readonly port?: number;
  readonly access?: string;
  readonly insecure?: boolean;
  readonly interface?: string;
  /** As the configuration writes it. */
  readonly idleTimeout?: string;
  readonly preload?: readonly string[];
  readonly pidFile?: string;
  /** File for a recording; it must not exist yet. */
  readonly record?: string;
  /** How much of it is kept, as a size or an age. */
  readonly recordKeep?: string;
  /** Folder for recordings that clients begin and end. */
  readonly recordings?: string;
  /** Folder of a journal. */
  readonly journal?: string;
  readonly durability?: string;
  readonly onJournalError?: 'stop' | 'continue';
  /** Milliseconds that a scheduler which starts again waits for its workers. */
  readonly journalWait?: number;
  /** Also listen for Dask. */
  readonly dask?: boolean;
  readonly daskPort?: number;
  readonly python?: string;
  /** Whether Dask's clients may run Python of theirs beside the scheduler. */
  readonly schedulerPython?: boolean;
  /** Certificates for Dask; with any of them its address is encrypted. */
  readonly tlsCaFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/** What the flags and Dask's configuration say together. */
export interface SchedulerCommand extends Listening {
  readonly dask: boolean;
  readonly daskPort?: number;
  readonly python?: string;
  readonly tls: Readonly<Record<string, string>>;
  /** The own protocol is encrypted, also within this machine. */
  readonly isSecure: boolean;
  /** It is not, also beyond this machine. */
  readonly isInsecure: boolean;
  /** Configurations around that of the file. */
  readonly layers: ConfigLayers;
  /** Options of the plugin `dask`, but for its address and certificates. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** @throws YardmasterError `ERR_CONFIG` when flags contradict each other, or need `--dask` */
export function prepareCommand(flags: SchedulerFlags, log: Logger): SchedulerCommand {
  const { dask = false, daskPort, python, schedulerFile, contactAddress } = flags;
  for (const line of checkDaskFlags(flags, dask)) log.warn({}, line);
  // Without --dask they are for our own address, which takes them from the environment.
  const tls = dask ? tlsFilesOf(flags) : {};
  const settings = dask ? readDaskSettings(process.env, python) : undefined;
  if (settings !== undefined) reportSettings(settings, log);
  const { protocol: scheme, ...options } = settings?.options ?? {};
  const listening = listeningOf(flags);
  if (listening.protocol === 'tcp' && namesCertificates({ tls })) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'certificates are named for an address that a flag wants without encryption; use tls:// in the place of tcp://, or leave the certificates out',
    );
  }
  const isEncrypted = typeof scheme === 'string' && protocolOf(scheme) === 'tls';
  return {
    ...(isEncrypted ? { protocol: 'tls' as const } : {}),
    ...listening,
    dask,
    tls,
    isSecure: flags.access !== undefined || (!dask && flags.tlsCert !== undefined),
    isInsecure: flags.insecure === true,
    ...(daskPort === undefined ? {} : { daskPort }),
    ...(python === undefined ? {} : { python }),
    layers: layersOf(flags, settings),
    options: {
      ...options,
      ...pythonPreloads(flags, settings),
      ...statusOptionsOf(flags),
      // Without its flag it is what Dask's configuration says.
      ...(flags.schedulerPython === false ? { schedulerPython: false } : {}),
      ...(schedulerFile === undefined ? {} : { schedulerFile }),
      ...(contactAddress === undefined ? {} : { contactAddress }),
    },
  };
}

/** Logs Dask's settings once, at the start: each applied one, and the ignored ones in one line. */
function reportSettings(settings: DaskSettings, log: Logger): void {
  for (const { key, value, source, to } of settings.taken) {
    log.info({ key, value, source, to }, `Dask's configuration: ${key}`);
  }
  const { ignored } = settings;
  if (ignored.length === 0) return;
  const names = ignored.map(({ key }) => key);
  log.warn(
    { ignored },
    `${names.length} keys of Dask's configuration have no effect here: ${names.join(', ')}; \`yardmaster check-config --dask\` says why`,
  );
}

/** Flags win over Dask's configuration, as with `dask scheduler`. */
function pythonPreloads(
  flags: SchedulerFlags,
  settings: DaskSettings | undefined,
): Readonly<Record<string, unknown>> {
  const { python: preload } = modulesOf(flags, flags.preload ?? settings?.preload ?? []);
  const { preloadArgv = [] } = settings ?? {};
  return preload.length === 0 ? {} : { preload, preloadArgv };
}

/** Without `--dask` every module is one of JavaScript. */
function modulesOf(
  { dask }: Pick<SchedulerFlags, 'dask'>,
  modules: readonly string[],
): ReturnType<typeof preloadsOf> {
  return dask === true ? preloadsOf(modules) : { javascript: modules.map(fromHere), python: [] };
}

function layersOf(flags: SchedulerFlags, settings: DaskSettings | undefined): ConfigLayers {
  const { idleTimeout } = flags;
  const preloadOf = (modules: readonly string[]): { preload?: readonly string[] } => {
    const { javascript } = modulesOf(flags, modules);
    return javascript.length === 0 ? {} : { preload: javascript };
  };
  const { config, preload = [] } = settings ?? {};
  return {
    ...(config === undefined
      ? {}
      : { defaults: { ...config, scheduler: { ...config.scheduler, ...preloadOf(preload) } } }),
    overrides: {
      scheduler: {
        ...(idleTimeout === undefined ? {} : { idleTimeout }),
        ...preloadOf(flags.preload ?? []),
      },
    },
  };
}

/** The certificates that flags name, as options of the plugin `dask`. */
function tlsFilesOf({ tlsCaFile, tlsCert, tlsKey }: SchedulerFlags): Record<string, string> {
  return {
    ...(tlsCaFile === undefined ? {} : { caFile: tlsCaFile }),
    ...(tlsCert === undefined ? {} : { cert: tlsCert }),
    ...(tlsKey === undefined ? {} : { key: tlsKey }),
  };
}

/** Whether a flag names a certificate. */
export function namesCertificates({ tls }: Pick<SchedulerCommand, 'tls'>): boolean {
  return Object.keys(tls).length > 0;
}
