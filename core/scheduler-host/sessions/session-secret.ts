import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Proves that a peer which connects anew is the one that had the session before. Its name does not: every
 * client sees the names of all workers and clients. Only a hash is kept.
 */
export class SessionSecret {
  private readonly hash: Buffer;

  constructor(secret: string) {
    this.hash = hashOf(secret);
  }

  /** Takes the same time whether the secret is nearly right or not at all. */
  matches(secret: string | undefined): boolean {
    return secret !== undefined && timingSafeEqual(hashOf(secret), this.hash);
  }
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
