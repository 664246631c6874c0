import { setFlagsFromString } from 'node:v8';
import { type Logger, YardmasterError } from '../../core/api/index.ts';
import type { ConfigLayers } from '../../core/config/check.ts';
import { type DaskSettings, readDaskSettings } from '../app/dask-settings.ts';
import { hostOfInterface } from '../dask/wire/listener.ts';
import { fromHere } from './command-line.ts';
import { SCHEDULER_SETTINGS, settingsFrom } from './setting-flags.ts';
import type { LogFlags } from './terminal.ts';

/** The flags of `dask scheduler` that only have an effect with `--dask`. */
interface DaskFlags {
  readonly schedulerFile?: string;
  readonly contactAddress?: string;
  readonly protocol?: string;
  readonly dashboardAddress?: string;
  /** A port, or whether there is a dashboard. */
  readonly dashboard?: boolean | number;
  /** Without effect, as in Dask's newer releases. */
  readonly show?: boolean;
  readonly dashboardPrefix?: string;
  readonly useXheaders?: string;
  readonly jupyter?: boolean;
  readonly daskPort?: number;
  readonly python?: string;
  /** False: Dask's clients may not run Python of theirs beside the scheduler. */
  readonly schedulerPython?: boolean;
}

/** The address to listen at, from the flags `--host`, `--port`, `--interface` and `--protocol`. */
interface Listening {
  readonly host?: string;
  readonly port?: number;
  readonly protocol?: 'tcp' | 'tls';
}

const ONLY_DASK: readonly (readonly [flag: keyof DaskFlags, spelled: string])[] = [
  ['schedulerFile', '--scheduler-file'],
  ['contactAddress', '--contact-address'],
  ['protocol', '--protocol'],
  ['dashboardPrefix', '--dashboard-prefix'],
  ['useXheaders', '--use-xheaders'],
  ['show', '--show and --no-show'],
  ['daskPort', '--dask-port'],
  ['python', '--python'],
  ['schedulerPython', '--no-scheduler-python'],
];

/**
 * @returns one line for each flag that is accepted and has no effect
 * @throws YardmasterError `ERR_CONFIG` for a flag that needs `--dask`, and for `--jupyter`
 */
export function checkDaskFlags(flags: DaskFlags, isDask: boolean): readonly string[] {
  if (flags.jupyter === true) {
    throw refused(
      "--jupyter runs a Jupyter server inside the Python process of Dask's scheduler, and this scheduler is not a Python process; start a Jupyter server beside it",
    );
  }
  const { schedulerPython, ...others } = flags;
  const given: DaskFlags = schedulerPython === false ? flags : others;
  const found = ONLY_DASK.find(([flag]) => given[flag] !== undefined);
  if (!isDask && found !== undefined) {
    const [flag, spelled] = found;
    const isOurs = ['daskPort', 'python', 'schedulerPython'].includes(flag);
    const verb = spelled.includes(' and ') ? 'are flags' : 'is a flag';
    throw refused(`${spelled} ${verb} ${isOurs ? 'for Dask' : 'of `dask scheduler`'}; add --dask`);
  }
  const without = [
    ...(flags.show === true ? ['--show'] : []),
    ...(flags.dashboardPrefix === undefined ? [] : ['--dashboard-prefix']),
    ...(flags.useXheaders === undefined ? [] : ['--use-xheaders']),
  ];
  return without.map((flag) => `${flag} has no effect: the dashboard is served as it is`);
}

/**
 * @param flags - `host` may be a host, `host:port`, or a URI such as `tls://0.0.0.0:8786`
 * @throws YardmasterError `ERR_CONFIG` for contradictions, and for protocols that do not exist here
 */
export function listeningOf(flags: {
  readonly host?: string;
  readonly port?: number;
  readonly interface?: string;
  readonly protocol?: string;
}): Listening {
  const given = flags.host === undefined ? {} : hostPartsOf(flags.host);
  if (flags.interface !== undefined && given.host !== undefined) {
    throw refused(
      `--host ${given.host} and --interface ${flags.interface} both name where to listen; leave one out`,
    );
  }
  if (flags.port !== undefined && given.port !== undefined && given.port !== flags.port) {
    throw refused(`--host names port ${given.port}, and --port ${flags.port}; leave one out`);
  }
  const host = flags.interface === undefined ? given.host : hostOfInterface(flags.interface);
  const port = flags.port ?? given.port;
  const protocol = flags.protocol ?? given.protocol;
  return {
    host,
    port,
    ...(protocol === undefined ? {} : { protocol: protocolOf(protocol) }),
  };
}

/** @throws YardmasterError `ERR_CONFIG` */
function protocolOf(name: string): 'tcp' | 'tls' {
  const plain = name.replace(/:\/\/$/, '');
  if (plain === 'tcp' || plain === 'tls') return plain;
  throw refused(`the protocol "${name}" is not available; it can be tcp or tls`);
}

/** Host and port of the dashboard, as options of the plugin `dask`. */
export function statusOptionsOf({ dashboard, dashboardAddress }: DaskFlags): {
  readonly statusHost?: string;
  readonly statusPort?: number;
} {
  if (dashboard === false) return { statusPort: -1 };
  if (typeof dashboard === 'number') {
    return {
      ...statusOptionsOf({ dashboardAddress }),
      statusPort: dashboard,
    };
  }
  if (dashboardAddress === undefined) return {};
  const form = /^(?:https?:\/\/)?(?<host>\[[^\]]+\]|[^:/,]*)(?::(?<port>\d{1,5}))?\/?$/;
  const groups = /^\d{1,5}$/.test(dashboardAddress)
    ? { port: dashboardAddress, host: '' }
    : form.exec(dashboardAddress)?.groups;
  const port = groups?.['port'];
  if (groups === undefined || Number(port ?? 0) > 65_535) {
    throw refused(
      `--dashboard-address ${dashboardAddress} is not of the form host:port, :port or port`,
    );
  }
  const host = (groups['host'] ?? '').replace(/^\[|\]$/g, '');
  return {
    ...(host === '' ? {} : { statusHost: host }),
    ...(port === undefined ? {} : { statusPort: Number(port) }),
  };
}

/** Modules to preload, apart by language: JavaScript is ours, Python is Dask's. */
function preloadsOf(modules: readonly string[]): {
  readonly javascript: readonly string[];
  readonly python: readonly string[];
} {
  const isJavaScript = (name: string): boolean => /\.[cm]?[jt]s(#\w+)?$/.test(name);
  return {
    javascript: modules.filter(isJavaScript).map(fromHere),
    python: modules.filter((name) => !isJavaScript(name)),
  };
}

function hostPartsOf(text: string): { host?: string; port?: number; protocol?: string } {
  const isBareIpv6 = /^[\da-f:]+$/i.test(text) && text.split(':').length > 2;
  if (isBareIpv6) return { host: text };
  const groups =
    /^(?:(?<protocol>[a-z]+):\/\/)?(?<host>\[[^\]]+\]|[^:/]*)(?::(?<port>\d{1,5}))?\/?$/.exec(
      text,
    )?.groups;
  if (groups === undefined) {
    throw refused(`--host ${text} is not a host, host:port, or a URI such as tcp://0.0.0.0:8786`);
  }
  const { protocol, host = '', port } = groups;
  return {
    ...(host === '' ? {} : { host: host.replace(/^\[|\]$/g, '') }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(protocol === undefined ? {} : { protocol }),
  };
}

function refused(message: string): YardmasterError {
  return new YardmasterError('ERR_CONFIG', message);
}

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
  /** The part of it that is kept, as a size or an age. */
  readonly recordKeep?: string;
  /** Folder for recordings that clients begin and end. */
  readonly recordings?: string;
  readonly journal?: string;
  readonly durability?: string;
  readonly onJournalError?: 'stop' | 'continue';
  /** Milliseconds that a scheduler which starts again waits for its workers. */
  readonly journalWait?: number;
  /** Also listen for Dask. */
  readonly dask?: boolean;
  /** Certificates for Dask; with any of them its address is encrypted. */
  readonly tlsCaFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/** The settings of the flags and of Dask's configuration together. */
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

/**
 * Logs Dask's settings once, at the start: each applied one, what is ignored of it, and the ignored ones in one line.
 */
function reportSettings(settings: DaskSettings, log: Logger): void {
  for (const { key, value, source, to } of settings.taken) {
    log.info({ key, value, source, to }, `Dask's configuration: ${key}`);
  }
  const takenKeys = new Set(settings.taken.map(({ key }) => key));
  for (const { key, reason, source } of settings.ignored) {
    if (takenKeys.has(key)) log.warn({ key, source }, `Dask's configuration: ${reason}`);
  }
  const ignored = settings.ignored.filter(({ key }) => !takenKeys.has(key));
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
        ...settingsFrom(SCHEDULER_SETTINGS, flags),
        idleTimeout,
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

/** True when a flag names a certificate. */
export function namesCertificates({ tls }: Pick<SchedulerCommand, 'tls'>): boolean {
  return Object.keys(tls).length > 0;
}

/**
 * Sets V8 up for a process that is a scheduler and nothing else. Call it once, at the start.
 *
 * V8 learns where objects live long and makes later ones of that place in the old generation at once.
 * The first messages after a large submission do live long; what V8 learns from them is wrong for the
 * millions that follow, each of which then waits for a full collection: half as much CPU again.
 *
 * Several threads that copy what survives wait for each other more than they share: one does it with a
 * tenth less CPU, and leaves the other cores to the workers.
 */
export function tuneEngine(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--no-parallel-scavenge');
}
