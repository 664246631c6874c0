import type { Fields } from './wire/codec.ts';
import { readFileSync, rmSync } from 'node:fs';
import { messageOf, YardmasterError } from '../../core/api/index.ts';
import { replaceFile } from '../log/segment-file.ts';
import { RenewedFiles } from '../transports/certificate-layer.ts';
import { DaskConfig, type Environment } from './config.ts';
import { toPlain } from './wire/plain.ts';
import { parseDaskAddress, type TlsCredentials } from './wire/sockets.ts';

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

interface TlsConfig {
  readonly files: TlsFiles;
  /** Nothing may listen or call without encryption. */
  readonly requireEncryption: boolean;
}

/**
 * Reads what Dask's own configuration says of the scheduler's certificates: the YAML files in
 * `/etc/dask`, `~/.config/dask` and `DASK_CONFIG`, then the environment
 * (`DASK_DISTRIBUTED__COMM__TLS__CA_FILE` and so on), where later ones win.
 *
 * @throws YardmasterError `ERR_CONFIG` when a file is not YAML
 */
export function readDaskTlsConfig(env: Environment): TlsConfig {
  const config = DaskConfig.read(env);
  const find = (key: string): unknown => config.find(`distributed.comm.${key}`)?.value;
  return {
    files: {
      caFile: textOf(find('tls.ca-file')),
      cert: textOf(find('tls.scheduler.cert')),
      key: textOf(find('tls.scheduler.key')),
      ciphers: textOf(find('tls.ciphers')),
      minVersion: textOf(find('tls.min-version')),
      maxVersion: textOf(find('tls.max-version')),
    },
    requireEncryption: isTrue(find('require-encryption')),
  };
}

/**
 * Reads the certificates that are named, and again when the files have changed; undefined when none are.
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
  return new RenewedFiles([caFile, cert, key], () => ({
    ca: readPem(caFile, 'tls.ca-file'),
    cert: readPem(cert, 'tls.scheduler.cert'),
    key: readPem(key, 'tls.scheduler.key'),
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(min === undefined ? {} : { minVersion: min }),
    ...(max === undefined ? {} : { maxVersion: max }),
  }));
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
  env: Environment,
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

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value !== 'None' ? value : undefined;
}

function isTrue(value: unknown): boolean {
  return (
    value === true || value === 1 || (typeof value === 'string' && /^(true|1|yes)$/i.test(value))
  );
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
      `${name} names ${file}, which cannot be read: ${messageOf(cause)}`,
      { name, file },
      { cause },
    );
  }
}

/**
 * The file by which Dask's clients and workers find the scheduler (`--scheduler-file`). It appears whole,
 * as they poll for it, and is deleted when the scheduler ends, unless another scheduler has replaced it.
 */
export class SchedulerFile {
  private constructor(
    private readonly path: string,
    private readonly id: string,
  ) {}

  /** @throws YardmasterError `ERR_CONFIG` when it cannot be written */
  static write(path: string, id: string, identity: Fields): SchedulerFile {
    try {
      replaceFile(path, `${JSON.stringify(toPlain(identity), undefined, 2)}\n`);
    } catch (cause) {
      throw new YardmasterError(
        'ERR_CONFIG',
        `the scheduler file ${path} cannot be written: ${(cause as Error).message}`,
        { schedulerFile: path },
        { cause },
      );
    }
    return new SchedulerFile(path, id);
  }

  delete(): void {
    try {
      const { id } = JSON.parse(readFileSync(this.path, 'utf8')) as { readonly id?: unknown };
      if (id === this.id) rmSync(this.path, { force: true });
    } catch {
      // It is gone already, or no longer ours.
    }
  }
}
