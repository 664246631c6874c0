declare module '@20minutes/s3rver' {
  import type { RequestListener } from 'node:http';

  /** A local server of S3's protocol, which keeps objects in a folder. */
  export default class S3rver {
    constructor(options: {
      readonly directory: string;
      readonly silent: boolean;
      readonly allowMismatchedSignatures: boolean;
    });
    callback(): RequestListener;
  }
}
