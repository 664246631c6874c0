export { DASK_VALUES } from './foreign.ts';
export { decodeMessage } from './decode.ts';
export { encodeMessage, Encoder } from './encode.ts';
export { MsgpackExtension, Opaque } from './opaque.ts';
export { PyFloat, toNumber } from './py-float.ts';
