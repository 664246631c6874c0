import type * as Aws from '@aws-sdk/client-s3';
import {
  type BucketSpec,
  type ResultStore,
  type StoredResult,
  YardmasterError,
} from '../../core/api/index.ts';
import {
  checkKey,
  complaintAboutHead,
  FILE_HEADER_BYTES,
  headOf,
  parseResult,
  REMOVED,
  type Unusable,
} from './result-folder.ts';

/** The SDK, as it is used here. */
type Sdk = typeof Aws;

/** The names by which the SDK and its imitations say that there is no such object. */
const MISSING = new Set(['NoSuchKey', 'NotFound']);
/** An object without a byte has no range. */
const EMPTY = 'InvalidRange';

/**
 * Results in a bucket of S3 or of what speaks its protocol. An object is what a file of `ResultFolder` is, with the same
 * name, and is there as a whole or not at all.
 */
export class ResultBucket implements ResultStore {
  private constructor(
    private readonly sdk: Sdk,
    private readonly client: Aws.S3Client,
    private readonly spec: BucketSpec,
  ) {}

  /**
   * The credentials are those that the SDK finds: of the environment, of the machine.
   * @throws YardmasterError `ERR_RESULT_STORE` when the SDK is not installed
   */
  static async open(spec: BucketSpec): Promise<ResultBucket> {
    const sdk = await loadSdk();
    const { region, endpoint, forcePathStyle } = spec;
    const client = new sdk.S3Client({
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(forcePathStyle === undefined ? {} : { forcePathStyle }),
    });
    return new ResultBucket(sdk, client, spec);
  }

  async has(key: string): Promise<boolean> {
    const found = await this.get(key, `bytes=0-${FILE_HEADER_BYTES - 1}`);
    if (found === undefined) return false;
    const { Body: body, ContentRange: range = '' } = found;
    const head = await body?.transformToByteArray();
    // `bytes 0-19/1234`
    const nbytes = Number(range.slice(range.indexOf('/') + 1));
    const complaint = complaintAboutHead(head ?? new Uint8Array(), nbytes, key);
    if (complaint !== undefined) await this.drop(key, complaint);
    return complaint === undefined;
  }

  async read(key: string): Promise<StoredResult | undefined> {
    const found = await this.get(key);
    if (found === undefined) return undefined;
    const bytes = await found.Body?.transformToByteArray();
    const result = bytes === undefined ? 'damaged' : parseResult(bytes, key);
    if (typeof result !== 'string') return result;
    await this.drop(key, result);
    return undefined;
  }

  async write(key: string, result: StoredResult): Promise<void> {
    const body = Buffer.concat([headOf(key, result), result.value]);
    await this.client.send(new this.sdk.PutObjectCommand({ ...this.place(key), Body: body }));
  }

  async delete(key: string): Promise<void> {
    await this.client.send(new this.sdk.DeleteObjectCommand(this.place(key)));
  }

  /** @param range - of bytes. Default: all */
  private async get(key: string, range?: string): Promise<Aws.GetObjectCommandOutput | undefined> {
    const wanted = { ...this.place(key), ...(range === undefined ? {} : { Range: range }) };
    try {
      return await this.client.send(new this.sdk.GetObjectCommand(wanted));
    } catch (error) {
      const { name } = error as Error;
      if (name === EMPTY) await this.drop(key, 'damaged');
      else if (!MISSING.has(name)) throw error;
      return undefined;
    }
  }

  private place(key: string): { readonly Bucket: string; readonly Key: string } {
    const { bucket, prefix = '' } = this.spec;
    checkKey(key);
    return { Bucket: bucket, Key: `${prefix}${key.slice(0, 2)}/${key}` };
  }

  private async drop(key: string, why: Unusable): Promise<void> {
    const { Bucket, Key } = this.place(key);
    process.emitWarning(`s3://${Bucket}/${Key} ${REMOVED[why]}`, 'YardmasterResultStore');
    await this.delete(key);
  }
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_RESULT_STORE',
      'results in S3 need the package @aws-sdk/client-s3, which cannot be loaded here: npm install @aws-sdk/client-s3',
      {},
      { cause },
    );
  }
}
