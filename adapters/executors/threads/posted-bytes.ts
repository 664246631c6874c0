/** From here on, memory is shared or moved rather than copied. */
const MOVED_BYTES_MIN = 16 * 1024;

/**
 * Results of at least this size are in shared memory: the thread that computes them writes them
 * once, and other threads read them without a copy. They stay unchanged, because deserialisation
 * copies.
 */
const SHARED_BYTES_MIN = 64 * 1024;

/** The bytes as they shall be posted by the thread that made them. */
export function forSharing(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  if (bytes.buffer instanceof SharedArrayBuffer) return bytes;
  if (bytes.byteLength >= SHARED_BYTES_MIN) {
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength));
    shared.set(bytes);
    return shared;
  }
  return owned(bytes, moved);
}

/**
 * The bytes as they shall be posted by a thread that keeps them. Posting a view copies all the memory
 * under it, which may be a whole frame of the network, so the view is cut out first.
 */
export function forCopying(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  const { buffer, byteLength } = bytes;
  if (buffer.byteLength === byteLength || buffer instanceof SharedArrayBuffer) return bytes;
  // Not `slice`, which for a Buffer is another view.
  return owned(Uint8Array.prototype.slice.call(bytes), moved);
}

function owned(bytes: Uint8Array, moved: ArrayBuffer[]): Uint8Array {
  const { buffer, byteLength } = bytes;
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (isWhole && byteLength >= MOVED_BYTES_MIN) moved.push(buffer);
  return bytes;
}
