import { type ErrorPayload, YardmasterError } from '../../core/api/index.ts';

/** First byte of what stands for a value that could not come; no value begins with it. */
const MARK = 2;

/**
 * Bytes in the place of a result that cannot be represented in this language. Each reader gets the
 * error, and other tasks are not affected. The data of the error have to be plain.
 */
export function refusalBytes({ code, message, data }: YardmasterError): Uint8Array {
  const text = Buffer.from(JSON.stringify({ code, message, data }));
  const bytes = new Uint8Array(1 + text.byteLength);
  bytes[0] = MARK;
  bytes.set(text, 1);
  return bytes;
}

/** @throws YardmasterError when the bytes are those of {@link refusalBytes} */
export function checkRefusal(bytes: Uint8Array): void {
  if (bytes[0] !== MARK) return;
  const text = Buffer.from(bytes.subarray(1)).toString();
  const { code, message, data } = JSON.parse(text) as ErrorPayload;
  throw new YardmasterError(code as YardmasterError['code'], message, { ...data });
}
