import { YardmasterError } from '../../core/api/index.ts';

/** Bytes of a message besides the value that it carries: names, keys, options. */
const ENVELOPE_BYTES = 1024;

/**
 * Memory for a serialised value that has to fit into one message.
 *
 * @param messageBytesMax - of the connection; Infinity: no limit
 * @param what - how the message calls the value: `the arguments`
 * @param isShared - whether in shared memory, which the engine does not count when it looks for garbage. Default false
 * @throws YardmasterError `ERR_FRAME` with the size and the limit
 */
export function allocateWithin(
  messageBytesMax: number,
  what: string,
  isShared = false,
): (nbytes: number) => Uint8Array {
  return (nbytes) => {
    checkFits(nbytes, messageBytesMax, what);
    return new Uint8Array(isShared ? new SharedArrayBuffer(nbytes) : new ArrayBuffer(nbytes));
  };
}

/** @throws YardmasterError `ERR_FRAME` with the size and the limit, as for {@link allocateWithin} */
export function checkFits(nbytes: number, messageBytesMax: number, what: string): void {
  const bytesMax = messageBytesMax - ENVELOPE_BYTES;
  if (nbytes <= bytesMax) return;
  throw new YardmasterError(
    'ERR_FRAME',
    `${what} of ${nbytes} bytes cannot be sent: the limit of one message between client, scheduler and workers leaves ${bytesMax} bytes; split the value, have tasks read it where they run, or raise frameBytesMax of the transport everywhere`,
    { nbytes, nbytesMax: bytesMax },
  );
}
