import { YardmasterError } from '../../../core/api/index.ts';
import type { FrameLimits } from './frames.ts';

/**
 * What we say of ourselves. No compression, so that no peer compresses what it sends to us; payloads
 * that peers compressed for each other pass through.
 */
export const HANDSHAKE = {
  compression: null,
  python: [3, 11, 0],
  'pickle-protocol': 5,
} as const;

/** Small limits for peers that have not completed the handshake. */
export const HANDSHAKE_LIMITS: FrameLimits = {
  messageBytesMax: 64 * 1024,
  framesMax: 16,
  valuesMax: 512,
};

/** What a peer says of itself. */
export interface PeerInfo {
  readonly pickleProtocol: number;
  /** Version of its Python: `[3, 11, 2]`. */
  readonly python?: readonly unknown[];
}

/** @throws YardmasterError `ERR_PROTOCOL` when it is no introduction of a Dask peer */
export function checkHandshake(message: unknown): PeerInfo {
  if (typeof message === 'object' && message !== null) {
    const { 'pickle-protocol': pickleProtocol, python } = message as Record<string, unknown>;
    if (typeof pickleProtocol === 'number') {
      return { pickleProtocol, ...(Array.isArray(python) ? { python } : {}) };
    }
  }
  throw new YardmasterError(
    'ERR_PROTOCOL',
    'the first message of the peer is no introduction of a Dask process with its pickle-protocol; it does not speak the protocol of Dask, or is older than 2020',
  );
}
