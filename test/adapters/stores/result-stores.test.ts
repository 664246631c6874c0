/** What every store of results has to do. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import S3rver from '@20minutes/s3rver';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { checkSubmission } from '../../../adapters/client/options.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { AnsweringStore } from '../../../adapters/stores/open-result-store.ts';
import { ResultBucket } from '../../../adapters/stores/result-bucket.ts';
import { ResultFolder } from '../../../adapters/stores/result-folder.ts';
import type { TaskFunction } from '../../../adapters/tasks/index.ts';
import { storeConformance, type StoreHarness } from '../../../adapters/testing/index.ts';
import type { BucketSpec, ResultStore } from '../../../core/api/index.ts';

const BUCKET = 'results';
let server: Server;
let storage: string;
let s3: S3Client;
let endpoint: string;

beforeAll(async () => {
  // What the SDK finds in the environment, here and in workers. It would warn on Node 20, and look for the machine.
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'S3RVER');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'S3RVER');
  vi.stubEnv('AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED', 'true');
  storage = mkdtempSync(join(tmpdir(), 'yardmaster-s3-'));
  const app = new S3rver({ directory: storage, silent: true, allowMismatchedSignatures: true });
  server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
});
afterAll(async () => {
  s3.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(storage, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

/** A store, and its files or objects. */
interface Bench {
  /** Otherwise writes at the same time may leave a mixture, as this server does, which counts as damaged. */
  readonly isAtomic: boolean;
  open(): Promise<ResultStore>;
  get(key: string): Promise<Uint8Array>;
  put(key: string, bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

function folderBench(): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-results-'));
  const pathOf = (key: string): string => join(folder, key.slice(0, 2), key);
  return {
    isAtomic: true,
    open: () => Promise.resolve(new ResultFolder(folder)),
    get: async (key) => await readFile(pathOf(key)),
    put: async (key, bytes) => writeFile(pathOf(key), bytes),
    close: async () => rm(folder, { recursive: true }),
  };
}

let tests = 0;
function specOf(prefix: string): BucketSpec {
  return { bucket: BUCKET, prefix, endpoint, region: 'us-east-1', forcePathStyle: true };
}

function bucketBench(): Bench {
  const prefix = `test-${tests++}/`;
  const at = (key: string) => ({ Bucket: BUCKET, Key: `${prefix}${key.slice(0, 2)}/${key}` });
  return {
    isAtomic: false,
    open: () => ResultBucket.open(specOf(prefix)),
    get: async (key) => (await s3.send(new GetObjectCommand(at(key)))).Body!.transformToByteArray(),
    put: async (key, bytes) => {
      await s3.send(new PutObjectCommand({ ...at(key), Body: bytes }));
    },
    close: async () => {
      const { Contents: all = [] } = await s3.send(
        new ListObjectsV2Command({ Bucket: BUCKET, Prefix: prefix }),
      );
      for (const { Key } of all) await s3.send(new DeleteObjectCommand({ Bucket: BUCKET, Key }));
    },
  };
}

const keyOf = (index: number): string => `${index}`.padStart(64, '0');

type Damage = (bytes: Uint8Array) => Uint8Array;
const DAMAGES: Readonly<Record<string, Damage>> = {
  cut: (bytes) => bytes.subarray(0, 30),
  'cut within its head': (bytes) => bytes.subarray(0, 5),
  'something else': () => new Uint8Array(500).fill(120),
};

for (const [name, makeBench] of Object.entries({ folderBench, bucketBench })) {
  const makeHarness = (): StoreHarness => {
    vi.spyOn(process, 'emitWarning').mockReturnValue();
    const bench = makeBench();
    return {
      open: () => bench.open(),
      damage: async (key, change) => bench.put(key, change(await bench.get(key))),
      isAtomic: bench.isAtomic,
      close: async () => {
        vi.restoreAllMocks();
        await bench.close();
      },
    };
  };
  storeConformance(name, makeHarness, { describe, it: test });
}

describe.each([
  ['folder of results', folderBench, { ...DAMAGES, empty: () => new Uint8Array(0) }],
  // Asked for a part of an empty object, S3 refuses, but this server breaks the connection.
  ['bucket of S3', bucketBench, DAMAGES],
] as const)('a %s', (_, makeBench, damages) => {
  let bench: Bench;
  let results: ResultStore;
  beforeEach(async () => {
    bench = makeBench();
    results = await bench.open();
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await bench.close();
  });

  test.each(Object.entries(damages))('removes what is %s', async (_, damage) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    for (const look of ['has', 'read'] as const) {
      await results.write(keyOf(1), { type: 'Uint8Array', value: new Uint8Array(100_000) });
      await bench.put(keyOf(1), damage(await bench.get(keyOf(1))));
      expect((await results[look](keyOf(1))) ?? false).toBe(false);
      await expect(bench.get(keyOf(1))).rejects.toThrow();
    }
    expect(warned).toHaveBeenCalledTimes(2);
  });

  test('never reads what was changed in one byte', async () => {
    vi.spyOn(process, 'emitWarning').mockReturnValue();
    await results.write(keyOf(1), { type: 'Uint8Array', value: new Uint8Array(100_000) });
    const bytes = new Uint8Array(await bench.get(keyOf(1)));
    bytes[60] = 1;
    await bench.put(keyOf(1), bytes);
    expect(await results.read(keyOf(1))).toBeUndefined();
  });

  test('never reads the result of another key, whatever was renamed, exchanged or restored', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    for (const look of ['has', 'read'] as const) {
      for (const index of [1, 2]) {
        const value = new Uint8Array(100_000).fill(index);
        await results.write(keyOf(index), { type: 'Uint8Array', value });
      }
      const [one, two] = [await bench.get(keyOf(1)), await bench.get(keyOf(2))];
      await bench.put(keyOf(1), two);
      await bench.put(keyOf(2), one);
      for (const index of [1, 2]) {
        expect((await results[look](keyOf(index))) ?? false).toBe(false);
        await expect(bench.get(keyOf(index))).rejects.toThrow();
      }
    }
    expect(warned).toHaveBeenCalledTimes(4);
    expect(warned.mock.calls[0]?.[0]).toMatch(
      /0001 holds the result of another key and was removed: files were renamed or exchanged/,
    );
  });

  test.each(['../x', '', 'A'.repeat(64)])('refuses the key "%s"', async (key) => {
    const refused = { code: 'ERR_RESULT_STORE' };
    await expect(results.has(key)).rejects.toMatchObject(refused);
    await expect(results.write(key, { type: 'x', value: new Uint8Array(1) })).rejects.toMatchObject(
      refused,
    );
  });
});

test('a bucket without a name is refused', () => {
  expect(() => checkSubmission({ resultStore: { s3: {} as BucketSpec } })).toThrow(
    /resultStore\.s3\.bucket must be text that is not empty/,
  );
});

test('a bucket that is not there is an error, not an empty store', async () => {
  const results = await ResultBucket.open({ ...specOf(''), bucket: 'not-there' });
  await expect(results.has(keyOf(1))).rejects.toThrow(/bucket/i);
});

test('results in a bucket are read by the workers of the next cluster', async () => {
  const { load, double } = (await import(
    new URL('../client/fixtures/kept-tasks.mjs', import.meta.url).href
  )) as Record<'load' | 'double', TaskFunction<[log: string, value: number], number>>;
  const log = join(storage, 'log');
  for (const mode of ['threads', 'inline'] as const) {
    await using cluster = await LocalCluster.start({ mode, workers: 1 });
    const client = await cluster.client({ resultStore: { s3: specOf('kept/') } });
    const kept = client.with({ persist: true });
    const loaded = kept.submit(load, log, 3);
    expect(await kept.submit(double, log, loaded as never).result()).toBe(6);
  }
  expect(readFileSync(log, 'utf8').trim().split('\n').sort()).toEqual(['double 3', 'load 3']);
});

test('a store that does not answer fails in time, and is left alone for a while', async () => {
  const clock = new VirtualClock();
  let asked = 0;
  const silent = (): Promise<never> => (asked++, new Promise<never>(() => undefined));
  const store = new AnsweringStore(
    { has: silent, read: silent, write: silent, delete: () => Promise.resolve() },
    clock,
  );
  const failure = { code: 'ERR_RESULT_STORE' };
  const first = expect(store.has('a')).rejects.toMatchObject(failure);
  await clock.advanceAsync(10_000);
  await first;
  await expect(store.read('a')).rejects.toMatchObject(failure);
  expect(asked).toBe(1);
  await clock.advanceAsync(30_000);
  await expect(store.delete('a')).resolves.toBeUndefined();
});
