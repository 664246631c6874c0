/**
 * The bytes of a log. `docs/log.md` describes them for readers in other languages; all numbers are
 * little-endian.
 *
 *     file   = magic (8 bytes) version (u32) 0 (u32) frame*
 *     frame  = length of body (u32) CRC-32C of body (u32) body
 *     body   = kind (u8) mark (u24) sequence number (u64) time in ms (f64) payload (msgpack)
 */
import type { UseEntry } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { StatePart } from '../kernel/snapshot/state-parts.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { DigestLanes } from './digest.ts';

/** `YARDLOG` and a line feed, so that a transfer as text is noticed. */
export const MAGIC = Uint8Array.of(0x59, 0x41, 0x52, 0x44, 0x4c, 0x4f, 0x47, 0x0a);

/** Raised when old readers cannot read what is written. Version 1 has no frames of the kind `state`. */
export const FORMAT_VERSION = 2;
export const FORMAT_VERSION_MIN = 1;

export const FILE_HEADER_BYTES = 16;
/** A mark has so many bits. */
export const MARK_MASK = 0xffffff;

export const FRAME_HEADER_BYTES = 8;
export const BODY_HEADER_BYTES = 20;

/** A longer frame is a damaged length: 1 GiB. */
export const FRAME_BYTES_MAX = 2 ** 30;

/** What a frame holds, by the number that is written. */
export const FRAME_KINDS = [
  'header',
  'stimulus',
  'policies',
  'check',
  'end',
  'entry',
  'checkpoint',
  'state',
] as const;
/** What a frame holds. */
export type FrameKind = (typeof FRAME_KINDS)[number];

/** The first frame: what the kernel was made of. */
export interface LogHeader {
  /** Version of the package that wrote it. */
  readonly version: string;
  readonly schedulerId: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** The complete configuration; what was given as an object in code is left out. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Folder that relative paths of the configuration are resolved from. */
  readonly folder: string;
  /** Number of the segment, when this is one of a journal and not a recording. */
  readonly segment?: number;
}

/** Who is in charge of each slot from here on. */
export type LoggedPolicies = Readonly<Record<string, LoggedPolicy>>;

/** A policy as a log names it. */
export interface LoggedPolicy {
  readonly name: string;
  /** How it was configured; absent for what is built in by default, and for what was given as an object. */
  readonly entry?: UseEntry;
}

/** What the kernel has done up to here, so that a replay can be compared. */
export interface LogCheck {
  /** A hash of all transitions and messages since the start. */
  readonly decisions: string;
  /** Transitions since the start. */
  readonly transitions: number;
  /** Digest of the whole state; not at every check, since it is O(tasks). */
  readonly state?: string;
}

/** Of a journal: the entries before it, from the first frame on, are all that was known at that moment. */
export interface JournalCheckpoint {
  readonly entries: number;
}

/** Of a recording: the frames of the kind `state` right before it are the state of the kernel at that moment. */
export interface RecordingCheckpoint {
  /** Number of these frames. */
  readonly parts: number;
  /** Who is in charge of each slot. */
  readonly policies: LoggedPolicies;
  /** The hash of decisions as it was, so that it can be continued: its two lanes. */
  readonly lanes: DigestLanes;
  /** Digest of the state, to check what was restored. */
  readonly state: string;
}

/** A frame that completes a checkpoint. */
export type LogCheckpoint = JournalCheckpoint | RecordingCheckpoint;

/** One frame, decoded. */
export type LogFrame = FramePlace &
  (
    | { readonly kind: 'header'; readonly payload: LogHeader }
    | { readonly kind: 'stimulus'; readonly payload: Stimulus }
    | { readonly kind: 'policies'; readonly payload: LoggedPolicies }
    | { readonly kind: 'check' | 'end'; readonly payload: LogCheck }
    | { readonly kind: 'entry'; readonly payload: Stimulus }
    | { readonly kind: 'checkpoint'; readonly payload: LogCheckpoint }
    | { readonly kind: 'state'; readonly payload: StatePart }
  );

/** Where a frame is, and when it was written. */
export interface FramePlace {
  /** Where it begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Counts frames, from 0. */
  readonly sequence: number;
  /** When, on the scheduler's clock. */
  readonly timeMs: number;
  /** 24 bits of the hash of all decisions before this frame: the first frame after a difference shows it. */
  readonly mark: number;
}

/** The slots whose policies a log names: those that the kernel asks. */
export type LoggedSlot = Exclude<SlotName, 'stealing'>;

/** Bytes of plain data and back; msgpack. */
export interface PayloadCodec {
  /** @throws YardmasterError `ERR_NOT_SERIALISABLE` */
  encodeShared(value: unknown): Uint8Array;
  /** @throws YardmasterError `ERR_FRAME` */
  decode(bytes: Uint8Array): unknown;
}
