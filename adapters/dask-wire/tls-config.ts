import { readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { extname, join } from 'node:path';

import { parse } from 'yaml';

import { YardmasterError } from '../../core/api/index.ts';
import { parseDaskAddress } from './address.ts';
import type { TlsCredentials } from './open-socket.ts';

/** Names of files with certificates, as PEM. */
export interface TlsFiles {
  readonly caFile?: string | undefined;
  readonly cert?: string | undefined;
  /** Default: the file of the certificate, which may hold both. */
  readonly key?: string | undefined;
  readonly ciphers?: string | undefined;
  readonly minVersion?: string | undefined;
  readonly maxVersion?: string | undefined;
}

/** What is configured about encryption. */
export interface TlsConfig {
  readonly files: TlsFiles;
  /** Nothing may listen or call without encryption. */
  readonly requireEncryption: boolean;
}

type Tree = Readonly<Record<string, unknown>>;

/**
 * Reads what Dask's own configuration says of the scheduler's certificates: the YAML files in
 * `/etc/dask`, `~/.config/dask` and `DASK_CONFIG`, then the environment
 * (`DASK_DISTRIBUTED__COMM__TLS__CA_FILE` and so on), where later ones win.
 *
 * @throws YardmasterError `ERR_CONFIG` when a file is not YAML
 */
export function readDaskTlsConfig(env: Readonly<NodeJS.ProcessEnv>): TlsConfig {
  const folders = ['/etc/dask', join(homedir(), '.config', 'dask'), env['DASK_CONFIG']];
  const trees = folders.flatMap((folder) => (folder === undefined ? [] : readTrees(folder)));
  trees.push(treeOfEnvironment(env));
  const find = (...path: readonly string[]): unknown =>
    trees.reduce<unknown>(
      (found, tree) => at(tree, ['distributed', 'comm', ...path]) ?? found,
      undefined,
    );
  return {
    files: {
      caFile: textOf(find('tls', 'ca-file')),
      cert: textOf(find('tls', 'scheduler', 'cert')),
      key: textOf(find('tls', 'scheduler', 'key')),
      ciphers: textOf(find('tls', 'ciphers')),
      minVersion: textOf(find('tls', 'min-version')),
      maxVersion: textOf(find('tls', 'max-version')),
    },
    requireEncryption: isTrue(find('require-encryption')),
  };
}

/**
 * Reads the certificates that are named; undefined when none are.
 * @throws YardmasterError `ERR_CONFIG` when some are missing or cannot be read
 */
export function loadCredentials(files: TlsFiles): TlsCredentials | undefined {
  const { caFile, cert, key = cert, ciphers, minVersion, maxVersion } = files;
  if (caFile === undefined && cert === undefined) return undefined;
  if (caFile === undefined || cert === undefined || key === undefined) {
    const missing = caFile === undefined ? 'tls.ca-file' : 'tls.scheduler.cert';
    throw new YardmasterError(
      'ERR_CONFIG',
      `encryption is configured by half: ${missing} is missing; give the certificate authority and the scheduler's certificate with its key`,
      { missing },
    );
  }
  const min = versionOf(minVersion, 'tls.min-version');
  const max = versionOf(maxVersion, 'tls.max-version');
  return {
    ca: readPem(caFile, 'tls.ca-file'),
    cert: readPem(cert, 'tls.scheduler.cert'),
    key: readPem(key, 'tls.scheduler.key'),
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(min === undefined ? {} : { minVersion: min }),
    ...(max === undefined ? {} : { maxVersion: max }),
  };
}

/**
 * The certificates for an address: those that are named, each completed from Dask's configuration.
 * Undefined for `tcp://` without any.
 * @throws YardmasterError `ERR_CONFIG` when some are missing or unreadable, or when encryption is
 *   required and the address has none
 */
export function credentialsFor(
  address: string,
  files: TlsFiles | undefined,
  env: Readonly<NodeJS.ProcessEnv>,
): TlsCredentials | undefined {
  const config = readDaskTlsConfig(env);
  const { scheme } = parseDaskAddress(address);
  if (scheme === 'tls') {
    const credentials = loadCredentials({ ...config.files, ...files });
    if (credentials !== undefined) return credentials;
    throw new YardmasterError(
      'ERR_CONFIG',
      `cannot listen on ${address}: no certificates are configured. Name the authority, the scheduler's certificate and its key: with --tls-ca-file, --tls-cert and --tls-key, or in Dask's configuration (distributed.comm.tls)`,
      { address },
    );
  }
  if (!config.requireEncryption) return undefined;
  throw new YardmasterError(
    'ERR_CONFIG',
    `Dask's configuration says require-encryption, and ${address} has none; use tls:// in the place of tcp://`,
    { address },
  );
}

function readTrees(path: string): Tree[] {
  let names: string[];
  try {
    names = statSync(path).isDirectory()
      ? readdirSync(path)
          .filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name)))
          .sort()
          .map((name) => join(path, name))
      : [path];
  } catch {
    return []; // As with Dask, a folder that is not there has nothing to say.
  }
  return names.map(readTree);
}

function readTree(file: string): Tree {
  try {
    const tree: unknown = parse(readFileSync(file, 'utf8'));
    return isTree(tree) ? tree : {};
  } catch (cause) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `Dask's configuration ${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { file },
      { cause },
    );
  }
}

/** `DASK_A__B_C=1` is `{a: {b-c: 1}}`. */
function treeOfEnvironment(env: Readonly<NodeJS.ProcessEnv>): Tree {
  const root: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('DASK_') || text === undefined) continue;
    const path = name.slice('DASK_'.length).toLowerCase().split('__');
    let tree = root;
    for (const part of path.slice(0, -1)) {
      const next = tree[part];
      tree = tree[part] = isTree(next) ? next : {};
    }
    tree[path.at(-1) as string] = text;
  }
  return root;
}

/** In Dask's names `-` and `_` are the same. */
function at(tree: Tree, path: readonly string[]): unknown {
  let found: unknown = tree;
  for (const name of path) {
    if (!isTree(found)) return undefined;
    found = found[name] ?? found[name.replaceAll('-', '_')];
  }
  return found ?? undefined;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value !== 'None' ? value : undefined;
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && /^(true|1|yes)$/i.test(value));
}

function versionOf(text: string | undefined, name: string): 'TLSv1.2' | 'TLSv1.3' | undefined {
  if (text === undefined) return undefined;
  if (text === '1.2') return 'TLSv1.2';
  if (text === '1.3') return 'TLSv1.3';
  throw new YardmasterError('ERR_CONFIG', `${name} is ${text}; it can be 1.2 or 1.3`, {
    name,
    value: text,
  });
}

function readPem(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `${name} names ${file}, which cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { name, file },
      { cause },
    );
  }
}
