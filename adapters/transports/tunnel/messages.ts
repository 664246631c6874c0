import type { ErrorPayload } from '../../../core/api/index.ts';

/** From the thread that wants a connection. */
export type IntoTunnel =
  /** Encoded messages, each in separate memory. */
  | { readonly op: 'send'; readonly messages: readonly Uint8Array[] }
  | { readonly op: 'close' }
  | { readonly op: 'abort'; readonly reason: string };

/** From the thread that has the connection. */
export type OutOfTunnel =
  | { readonly op: 'opened'; readonly peerAddress: string }
  /** The connection could not be opened: nothing follows. */
  | { readonly op: 'failed'; readonly error: ErrorPayload }
  /** Number of bytes that have left since the last report, or nearly. */
  | { readonly op: 'taken'; readonly nbytes: number }
  /** @param taken - as `nbytes` of a report */
  | { readonly op: 'messages'; readonly messages: readonly Uint8Array[]; readonly taken: number }
  /** It is over: nothing follows. */
  | { readonly op: 'closed'; readonly error?: ErrorPayload };
