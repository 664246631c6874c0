import { YardmasterError } from '../../../core/api/index.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { DASK_VALUES } from '../../dask/codec/index.ts';
import type { FileSystem } from '../../log/file-system.ts';

/** Returns a codec for the entries of journals. Graphs of Dask's clients have values that sockets refuse. */
export function journalCodec(): MsgpackCodec {
  return new MsgpackCodec(undefined, { foreign: DASK_VALUES });
}

/** When what was written counts as written. */
export type Durability =
  /** When it is on the disk: it survives a power failure. */
  | 'commit'
  /** When the operating system has it, which puts it on the disk within this time. */
  | { readonly intervalMs: number }
  /** When the operating system has it, which puts it on the disk when it likes. */
  | 'none';

/** Where a scheduler writes down what it must not forget, and how. */
export interface JournalOptions {
  /** It is made if it does not exist. One scheduler at a time uses it. */
  readonly folder: string;
  /** Default `commit`. */
  readonly durability?: Durability;
  /** When the disk is full or fails: `stop` the scheduler, or `continue` without a journal. Default `stop`. */
  readonly onJournalError?: 'stop' | 'continue';
  /** Milliseconds that a scheduler which starts again waits for the workers that it had. Default 30 000. */
  readonly workerWaitMs?: number;
  /** Bytes by which a segment grows before the next one is begun, at least. Default 64 MiB. */
  readonly segmentBytes?: number;
  /** Where its files are. Default: on this machine. */
  readonly files?: FileSystem;
}

const INTERVAL = /^interval=(\d+)(ms|s)$/;

/** @throws YardmasterError `ERR_CONFIG` */
export function durabilityOf(text: string): Durability {
  if (text === 'commit' || text === 'none') return text;
  const [, amount, unit] = INTERVAL.exec(text) ?? [];
  const intervalMs = Number(amount) * (unit === 's' ? 1000 : 1);
  if (intervalMs > 0) return { intervalMs };
  throw new YardmasterError(
    'ERR_CONFIG',
    `the durability "${text}" is none of commit, interval=50ms and none`,
    { durability: text },
  );
}
