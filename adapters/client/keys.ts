import { createHash, hash, randomUUID } from 'node:crypto';
import { type FunctionSpec, YardmasterError } from '../../core/api/index.ts';
import { sharedMemoryOf } from '../../core/util/bytes.ts';
import { isWellFormed } from '../codecs/msgpack.ts';
import { commonName, ContentHash, isCanonical, notSerialisable } from '../tasks/index.ts';

/** Hex digits of a hash in a key: 128 bits. */
const HASH_DIGITS = 32;
const NO_PREFIX = new Uint8Array(0);
/** A longer key is surely a mistake: data instead of a name. */
const KEY_LENGTH_MAX = 8192;

/** The definition of a task: a function of a module in one version, applied to these arguments. */
export type Definition = Pick<FunctionSpec, 'module' | 'name' | 'version' | 'args'>;

/**
 * Equal exactly when the same source is called with the same arguments.
 * @param content - what `args` are the bytes of
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` when a part of it would arrive empty
 */
export function hashOf({ module, name, version, args }: Definition, content: unknown): string {
  const prefix = hashOfFunction(module, name, version);
  if (!isCanonical(args)) {
    const given = Array.isArray(content) ? content : (content as { readonly args: unknown }).args;
    return hashOfContent(prefix, content, sharedMemoryOf(args) !== undefined, () =>
      notSerialisable(given, 'arguments'),
    );
  }
  const length = prefix.byteLength + args.byteLength;
  const bytes = scratch.subarray(0, length);
  bytes.set(prefix);
  bytes.set(args, prefix.byteLength);
  return hash('sha256', bytes, 'hex').slice(0, HASH_DIGITS);
}

/**
 * Hash of a call that leaves out the version of the function and the keys of the tasks whose results are arguments.
 * @param content - as for {@link hashOf}
 */
export function hashOfCall(
  { module, name }: Omit<Definition, 'version' | 'args'>,
  content: unknown,
): string {
  const isBare = Array.isArray(content);
  const { args, holes } = isBare
    ? { args: content, holes: [] }
    : (content as Readonly<Record<string, unknown>>);
  const hashing = new ContentHash(Buffer.from(`${commonName(module)}\0${name}\0`));
  hashing.add([args, holes]);
  return hashing.digest();
}

interface FunctionHash {
  readonly version: string;
  readonly bytes: Uint8Array;
}

/** So that a task is hashed in one go, without the text that all tasks of a function share. */
const functionHashes = new Map<string, Map<string, FunctionHash>>();
/** For the bytes of a task that is hashed: canonical ones are few. */
const scratch = new Uint8Array(1024);

function hashOfFunction(module: string, name: string, version: string): Uint8Array {
  let ofModule = functionHashes.get(module);
  if (ofModule === undefined) {
    ofModule = new Map<string, FunctionHash>();
    functionHashes.set(module, ofModule);
  }
  const known = ofModule.get(name);
  if (known?.version === version) return known.bytes;
  const place = commonName(module);
  const bytes = createHash('sha256').update(`${place}\0${name}\0${version}\0`).digest();
  ofModule.set(name, { version, bytes });
  return bytes;
}

/**
 * Hash of a value that is given to the cluster as it is. Equal values have equal hashes.
 * @param what - how a message calls the value
 * @param isSharing - whether shared memory stays what it is: then it is equal to itself alone
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` when a part of it would arrive empty
 */
export function hashOfValue(value: unknown, what: string, isSharing: boolean): string {
  return hashOfContent(NO_PREFIX, value, isSharing, () => notSerialisable(value, what));
}

function hashOfContent(
  prefix: Uint8Array,
  content: unknown,
  isSharing: boolean,
  hollow: () => YardmasterError,
): string {
  const hashing = new ContentHash(prefix, isSharing);
  hashing.add(content);
  if (hashing.hasHollow) throw hollow();
  return hashing.digest().slice(0, HASH_DIGITS);
}

/** All unique keys of this thread begin with it: a UUID without its last digits, which count. */
const ORIGIN = randomUUID().slice(0, 24);
let uniqueCount = 0;

/** A key that no other task has. */
export function uniqueKey(name: string): string {
  return `${name}-${ORIGIN}${(++uniqueCount).toString(16).padStart(12, '0')}`;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it cannot name a task */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string') {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `a key must be a string, got ${key === null ? 'null' : typeof key}; give each task a name`,
      { key: String(key) },
    );
  }
  if (key.length === 0 || key.length > KEY_LENGTH_MAX) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `a key must have 1 to ${KEY_LENGTH_MAX} characters, got ${key.length}`,
      { keyLength: key.length },
    );
  }
  if (!isWellFormed(key)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `the key ${JSON.stringify(key)} has half of a surrogate pair, which cannot be sent; use well-formed text`,
      { key: JSON.stringify(key) },
    );
  }
  return key;
}
