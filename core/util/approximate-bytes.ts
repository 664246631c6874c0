/** What an object, an array or a field is taken to occupy beside its texts and bytes. */
const ENTRY_BYTES = 16;

/**
 * Bytes that data occupies, roughly, counted up to a limit, which also ends the count of data with circles.
 * O(values, at most limit / 16).
 */
export function approximateBytes(data: unknown, limit: number): number {
  const pending: unknown[] = [data];
  let nbytes = 0;
  while (pending.length > 0 && nbytes <= limit) {
    const value = pending.pop();
    nbytes += ENTRY_BYTES;
    if (typeof value === 'string') nbytes += value.length;
    else if (typeof value !== 'object' || value === null) continue;
    else if (ArrayBuffer.isView(value)) nbytes += value.byteLength;
    else if (Array.isArray(value)) {
      // No more than can count: a list of a hundred million nils is not copied.
      const count = Math.min(value.length, Math.ceil((limit - nbytes) / ENTRY_BYTES) + 1);
      for (let index = 0; index < count; index++) pending.push(value[index]);
    } else if (value instanceof Map) {
      for (const [key, item] of value) pending.push(key, item);
    } else {
      for (const name in value) {
        nbytes += name.length;
        pending.push((value as Readonly<Record<string, unknown>>)[name]);
      }
    }
  }
  return nbytes;
}
