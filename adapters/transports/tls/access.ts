import { randomBytes } from 'node:crypto';

import { type PeerRole, YardmasterError } from '../../../core/api/index.ts';

/** The form of an access file. */
const FORM = 'access/1';

/** 256 bits cannot be guessed, whatever an attacker has recorded. */
const KEY_BYTES = 32;

/** Whose keys there are. `data` opens the data ports of workers, and nothing of the scheduler. */
export const KEY_NAMES = ['worker', 'client', 'admin', 'viewer', 'data'] as const;

/** The secrets of a cluster by role, as far as their holder knows them. */
export interface Access {
  /** Of the scheduler; a hint for people, and for commands without an address. */
  readonly address?: string;
  readonly keys: Readonly<Partial<Record<PeerRole, string>>>;
  /** The process with which the file ends. */
  readonly owner?: Owner;
}

/** A process, on a machine. */
interface Owner {
  readonly pid: number;
  readonly host: string;
}

/** What each role has to know. Each knows the keys of its own doors only, so that no role can act as another. */
const KEYS_OF_ROLE: Readonly<Record<Exclude<PeerRole, 'data'>, readonly PeerRole[]>> = {
  worker: ['worker', 'data'],
  client: ['client', 'data'],
  admin: ['admin', 'data'],
  viewer: ['viewer'],
};

/** Roles that an access file can be cut down to. */
export const ACCESS_ROLES = Object.keys(KEYS_OF_ROLE) as readonly Exclude<PeerRole, 'data'>[];

/** New keys for every role. */
export function newAccess(address?: string): Access {
  const keys = Object.fromEntries(
    KEY_NAMES.map((name) => [name, randomBytes(KEY_BYTES).toString('base64url')]),
  );
  return { ...(address === undefined ? {} : { address }), keys };
}

/** What may be given to the holder of a role. */
export function accessOfRole(access: Access, role: Exclude<PeerRole, 'data'>): Access {
  const names = KEYS_OF_ROLE[role];
  const keys = Object.entries(access.keys).filter(([name]) => names.includes(name as PeerRole));
  const { address } = access;
  return { ...(address === undefined ? {} : { address }), keys: Object.fromEntries(keys) };
}

/** As an access file has it. */
export function formatAccess({ address, keys, owner }: Access): string {
  return `${JSON.stringify({ yardmaster: FORM, address, owner, keys }, undefined, 2)}\n`;
}

/**
 * Reads the text of an access file.
 * @param file - for errors
 * @throws YardmasterError `ERR_ACCESS`
 */
export function parseAccess(text: string, file: string): Access {
  const { yardmaster, address, keys, owner } = fieldsOf(text);
  if (yardmaster !== FORM) throw notAccess(file, `it has no field "yardmaster" with "${FORM}"`);
  if (address !== undefined && typeof address !== 'string') {
    throw notAccess(file, 'its address is not a text');
  }
  const found: [string, string][] = [];
  for (const [name, key] of Object.entries(keys ?? {})) {
    if (!(KEY_NAMES as readonly string[]).includes(name))
      throw notAccess(file, `it has a key for "${name.slice(0, 60)}", which is no role`);
    if (typeof key !== 'string' || Buffer.from(key, 'base64url').length !== KEY_BYTES) {
      throw notAccess(file, `its key for "${name}" is not ${KEY_BYTES} bytes in base64url`);
    }
    found.push([name, key]);
  }
  if (found.length === 0) throw notAccess(file, 'it has no keys');
  return {
    ...(address === undefined ? {} : { address }),
    ...(isOwner(owner) ? { owner } : {}),
    keys: Object.fromEntries(found),
  };
}

function isOwner(value: unknown): value is Owner {
  const { pid, host } = (value ?? {}) as Partial<Record<string, unknown>>;
  return Number.isSafeInteger(pid) && (pid as number) > 0 && typeof host === 'string';
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function notAccess(file: string, why: string): YardmasterError {
  return new YardmasterError(
    'ERR_ACCESS',
    `${file} is not an access file: ${why}; make one with "yardmaster access new"`,
    { file },
  );
}
