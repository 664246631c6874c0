import { encodeMessage, Opaque } from '../codec/index.ts';
import { writePickle } from './write-pickle.ts';

/**
 * A value of JavaScript as Dask's workers read the results of each other.
 * @throws NotPortable what has no equal in Python
 */
export function writeValue(value: unknown): Opaque {
  const { bytes, buffers } = writePickle(value, true);
  const frames = [bytes, ...buffers];
  const header = encodeMessage({
    serializer: 'pickle',
    writeable: buffers.map(() => true),
    compression: frames.map(() => null),
    'num-sub-frames': frames.length,
  });
  return new Opaque('serialized', header[0] as Uint8Array, frames);
}
