import type { UseEntry } from '../api/plugin.ts';
import type { StatePart } from '../kernel/snapshot.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { DigestLanes } from './digest.ts';

// The bytes of a log: a recording, or a segment of a journal. `docs/log.md` describes them for readers in other languages;
// all numbers are little-endian.
//
// file   = magic (8 bytes) version (u32) 0 (u32) frame*
// frame  = length of body (u32) CRC-32C of body (u32) body
// body   = kind and whether texts begin anew (u8) mark (u24) sequence number (u64) time in ms (f64) payload (msgpack)

/** `YARDLOG` and a line feed, so that a transfer as text is noticed. */
export const MAGIC = Uint8Array.of(0x59, 0x41, 0x52, 0x44, 0x4c, 0x4f, 0x47, 0x0a);

/** Raised when anything of a log gets another meaning. Logs of other versions than these two are refused. */
export const FORMAT_VERSION = 4;
/** The oldest version that is read: every payload stands for itself. */
export const FORMAT_VERSION_MIN = 3;

export const FILE_HEADER_BYTES = 16;
/** A mark has so many bits. */
export const MARK_MASK = 0xffffff;

export const FRAME_HEADER_BYTES = 8;
export const BODY_HEADER_BYTES = 20;

/** A longer frame is a damaged length: 1 GiB. */
export const FRAME_BYTES_MAX = 2 ** 30;

/** The kinds of frames, by the number that is written. */
export const FRAME_KINDS = [
  'header',
  'stimulus',
  'policies',
  'check',
  'end',
  'checkpoint',
  'state',
] as const;
export type FrameKind = (typeof FRAME_KINDS)[number];

/** Added to the kind of a frame whose payload refers to no earlier one: a reader may begin with it. */
export const STARTS_SERIES = 0x80;

/** The first frame: what the kernel was made of. A checkpoint follows on it. */
export interface LogHeader {
  /**
   * `all`, in a recording: every stimulus, so that a replay decides the same. `requests`, in a journal: the stimuli that
   * workers cannot report again.
   */
  readonly holds: 'all' | 'requests';
  /** Version of the package that wrote it. */
  readonly version: string;
  readonly schedulerId: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** The complete configuration; what was given as an object in code is left out. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Folder that relative paths of the configuration are resolved from. */
  readonly folder: string;
  /** Counts the files of a folder, from 1. */
  readonly segment: number;
}

/** The policies in charge from here on, by slot, and the rules as `rules[0]`, `rules[1]` and so on. */
export type LoggedPolicies = Readonly<Record<string, LoggedPolicy>>;

/** A policy as a log names it. */
interface LoggedPolicy {
  readonly name: string;
  /** Its configuration; absent for what is built in by default, and for what was given as an object or has objects as options. */
  readonly entry?: UseEntry;
  /** Of a rule. */
  readonly weight?: number;
}

/** A digest of what the kernel has done up to here, so that a replay can be compared. */
export interface LogCheck {
  /** A hash of all transitions and messages since the start. */
  readonly decisions: string;
  /** Transitions since the start. */
  readonly transitions: number;
  /** Digest of the whole state; not at every check, since it is O(tasks). */
  readonly state?: string;
}

/** Completes a checkpoint: the frames of the kind `state` right before it are the state of the kernel at that moment. */
export interface LogCheckpoint {
  /** Number of these frames. */
  readonly parts: number;
  /** The policies in charge of each slot. */
  readonly policies: LoggedPolicies;
  /** Both 32-bit halves of the hash of decisions, from which a replay continues it. */
  readonly lanes: DigestLanes;
  /** Digest of the state, to check what was restored. */
  readonly state: string;
  readonly journal?: JournalFacts;
}

/** The facts that a journal knows, and the kernel does not. */
interface JournalFacts {
  /** No run of this scheduler has this id or a later one, before the journal says so again. */
  readonly nextRunId: number;
  /** Hashes of the secrets with which workers, by address, and clients may come back. */
  readonly secretHashes: readonly (readonly [peer: string, hash: string])[];
  /** Numbers of the last reports of clients that are written. */
  readonly committed: readonly (readonly [client: string, number: number])[];
}

/** One frame, decoded. */
export type LogFrame = FramePlace &
  (
    | { readonly kind: 'header'; readonly payload: LogHeader }
    | { readonly kind: 'stimulus'; readonly payload: Stimulus }
    | { readonly kind: 'policies'; readonly payload: LoggedPolicies }
    | { readonly kind: 'check'; readonly payload: LogCheck }
    | { readonly kind: 'end'; readonly payload: Partial<LogCheck> }
    | { readonly kind: 'checkpoint'; readonly payload: LogCheckpoint }
    | { readonly kind: 'state'; readonly payload: StatePart }
  );

/** The place of a frame, and the time at which it was written. */
export interface FramePlace {
  /** The offset at which it begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Counts frames, from 0. */
  readonly sequence: number;
  /** The time, on the scheduler's clock. */
  readonly timeMs: number;
  /**
   * In a recording 24 bits of the hash of all decisions before this frame: the first frame after a difference shows it. In
   * a journal the number of frames before this one that a loss of power may still take.
   */
  readonly mark: number;
}

/** Bytes of plain data and back, of one log in its order: msgpack in which payloads refer to texts of earlier ones. */
export interface PayloadCodec {
  /** The next payload refers to no earlier one. */
  restart(): void;
  /** @throws YardmasterError `ERR_NOT_SERIALISABLE` */
  encodeShared(value: unknown): Uint8Array;
  /** @throws YardmasterError `ERR_FRAME` */
  decode(bytes: Uint8Array): unknown;
}

/** CRC-32C (Castagnoli), as in RFC 3720, section 12.1: the checksum of the frames of a log. */

const POLYNOMIAL = 0x82f63b78;
/** Bytes that one step takes in. */
const STRIDE = 8;

/** Table k says what a byte does that k more bytes follow. */
const TABLES: readonly Int32Array[] = makeTables();

/**
 * Eight bytes a step, from eight tables: half a gigabyte a second.
 * @param seed - the checksum of what precedes these bytes; 0 at the beginning
 * @returns an unsigned number of 32 bits
 */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as unknown as EightTables;
  let crc = ~seed;
  let at = 0;
  const end = bytes.length - STRIDE;
  for (; at <= end; at += STRIDE) {
    const first = crc ^ littleEndian(bytes, at);
    crc =
      (t7[first & 0xff] as number) ^
      (t6[(first >>> 8) & 0xff] as number) ^
      (t5[(first >>> 16) & 0xff] as number) ^
      (t4[first >>> 24] as number) ^
      (t3[bytes[at + 4] as number] as number) ^
      (t2[bytes[at + 5] as number] as number) ^
      (t1[bytes[at + 6] as number] as number) ^
      (t0[bytes[at + 7] as number] as number);
  }
  for (; at < bytes.length; at++) {
    crc = (t0[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

type EightTables = readonly [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

function littleEndian(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function makeTables(): Int32Array[] {
  const base = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    base[byte] = crc;
  }
  const tables = [base];
  for (let k = 1; k < STRIDE; k++) {
    const before = tables[k - 1] as Int32Array;
    tables.push(before.map((crc) => (base[crc & 0xff] as number) ^ (crc >>> 8)));
  }
  return tables;
}
