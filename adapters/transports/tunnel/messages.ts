import type { ErrorPayload } from '../../../core/api/index.ts';
import type { Reference } from './references.ts';

/** Encoded messages, each in separate memory. */
interface EncodedMessages {
  readonly messages: readonly Uint8Array[];
  /** What bytes in them refer to. Default: nothing. */
  readonly references?: readonly Reference[] | undefined;
}

/** From the thread that wants a connection. */
export type IntoTunnel =
  | ({ readonly op: 'send' } & EncodedMessages)
  | { readonly op: 'close' }
  | { readonly op: 'abort'; readonly reason: string };

/** From the thread that has the connection. */
export type OutOfTunnel =
  | { readonly op: 'opened'; readonly peerAddress: string; readonly sharesMemory: boolean }
  /** The connection could not be opened: nothing follows. */
  | { readonly op: 'failed'; readonly error: ErrorPayload }
  /** Number of bytes that have left since the last report, or nearly. */
  | { readonly op: 'taken'; readonly nbytes: number }
  /** @param taken - as `nbytes` of a report */
  | ({ readonly op: 'messages'; readonly taken: number } & EncodedMessages)
  /** It is over: nothing follows. */
  | { readonly op: 'closed'; readonly error?: ErrorPayload };
