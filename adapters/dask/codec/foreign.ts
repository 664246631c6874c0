import type { ForeignValues } from '../../codecs/msgpack/index.ts';
import { decodeMessage } from './decode.ts';
import { encodeMessage } from './encode.ts';
import { MsgpackExtension, Opaque } from './opaque.ts';
import { PyFloat } from './py-float.ts';

/**
 * What clients of Dask submit and plain data cannot express: values of Python, integral floats, maps, sets, large
 * integers. A journal keeps each as a message of Dask: number of frames, their lengths (u32, big-endian), the frames.
 */
export const DASK_VALUES: ForeignValues = {
  write(value) {
    if (!isOfDask(value)) return undefined;
    const frames = encodeMessage(value);
    const table = Buffer.alloc(4 * (frames.length + 1));
    table.writeUInt32BE(frames.length);
    frames.forEach((frame, index) => table.writeUInt32BE(frame.length, 4 * (index + 1)));
    return Buffer.concat([table, ...frames]);
  },
  read(bytes) {
    const table = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = table.readUInt32BE();
    const frames: Uint8Array[] = [];
    let at = 4 * (count + 1);
    for (let index = 1; index <= count; index++) {
      const end = at + table.readUInt32BE(4 * index);
      frames.push(bytes.subarray(at, end));
      at = end;
    }
    return decodeMessage(frames);
  },
};

function isOfDask(value: object | bigint): boolean {
  return (
    typeof value === 'bigint' ||
    value instanceof Opaque ||
    value instanceof PyFloat ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof MsgpackExtension
  );
}
