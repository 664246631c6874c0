import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

import { YardmasterError } from '../../../core/api/index.ts';
import { hostOfInterface } from '../../dask/connection/network-interface.ts';

/** The flags of `dask scheduler` that only have an effect with `--dask`. */
export interface DaskFlags {
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
}

/** Where to listen, from the flags `--host`, `--port`, `--interface` and `--protocol`. */
export interface Listening {
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
  const found = ONLY_DASK.find(([flag]) => flags[flag] !== undefined);
  if (!isDask && found !== undefined) {
    const verb = found[1].includes(' and ') ? 'are flags' : 'is a flag';
    throw refused(`${found[1]} ${verb} of \`dask scheduler\`; add --dask`);
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
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(protocol === undefined ? {} : { protocol: protocolOf(protocol) }),
  };
}

/** @throws YardmasterError `ERR_CONFIG` */
export function protocolOf(name: string): 'tcp' | 'tls' {
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
      ...statusOptionsOf({ ...(dashboardAddress === undefined ? {} : { dashboardAddress }) }),
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
export function preloadsOf(modules: readonly string[]): {
  readonly javascript: readonly string[];
  readonly python: readonly string[];
} {
  const isJavaScript = (name: string): boolean => /\.[cm]?[jt]s(#\w+)?$/.test(name);
  return {
    javascript: modules.filter(isJavaScript).map(fromHere),
    python: modules.filter((name) => !isJavaScript(name)),
  };
}

/** Paths of flags are relative to the current folder, not to a configuration file. */
export function fromHere(module: string): string {
  const [path = '', name] = module.split('#');
  if (!path.startsWith('.') && !existsSync(path)) return module;
  return name === undefined ? resolve(path) : `${resolve(path)}#${name}`;
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
