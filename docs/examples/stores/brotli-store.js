// A folder of compressed results. A file has the length of its head, the head (key and type as JSON), a checksum of all
// that it holds, and the compressed value. It gets its name when it is complete.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import { defineStore } from 'yardmaster/executor';

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);
const CHECKSUM_BYTES = 32;

export default defineStore({
  name: 'brotli',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['folder'],
    properties: {
      folder: { type: 'string' },
      quality: { type: 'integer', minimum: 0, maximum: 11, default: 4 },
    },
  },
  create: async (_context, { folder, quality }) => {
    await mkdir(folder, { recursive: true });
    const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
    const pathOf = (key) => {
      if (!/^[0-9a-f]{64}$/.test(key)) throw new Error(`${key} is not the key of a result`);
      return join(resolve(folder), key);
    };
    const read = async (key) => {
      const bytes = await readFile(pathOf(key)).catch(({ code }) => {
        if (code !== 'ENOENT') throw new Error(`${pathOf(key)} cannot be read: ${code}`);
      });
      return bytes && parse(bytes, key);
    };
    return {
      read,
      has: async (key) => (await read(key)) !== undefined,
      write: async (key, { type, value }) => {
        const head = Buffer.from(JSON.stringify({ key, type }));
        const length = Buffer.alloc(4);
        length.writeUInt32LE(head.byteLength);
        const packed = await compress(Buffer.from(value), { params });
        const part = `${pathOf(key)}.${randomUUID()}.part`;
        const parts = [length, checksum(head, packed), head, packed];
        await writeFile(part, Buffer.concat(parts));
        await rename(part, pathOf(key));
      },
      delete: (key) => rm(pathOf(key), { force: true }),
    };
  },
});

/** What is damaged, or of another key, counts as missing: it is computed again. */
async function parse(bytes, key) {
  if (bytes.byteLength < 4 + CHECKSUM_BYTES) return undefined;
  const start = 4 + CHECKSUM_BYTES;
  const head = bytes.subarray(start, start + bytes.readUInt32LE());
  const packed = bytes.subarray(start + head.byteLength);
  if (!checksum(head, packed).equals(bytes.subarray(4, start))) return undefined;
  const { key: own, type } = JSON.parse(head.toString());
  return own === key ? { type, value: await decompress(packed) } : undefined;
}

function checksum(head, packed) {
  return createHash('sha256').update(head).update(packed).digest();
}
