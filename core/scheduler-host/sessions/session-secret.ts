import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Proves that a peer which connects anew is the one that had the session before. Its name does not: every
 * client sees the names of all workers and clients. Only a hash is kept.
 */
export class SessionSecret {
  private readonly hash: Buffer;

  constructor(secret: string, hash = hashOf(secret)) {
    this.hash = hash;
  }

  /** The reverse of {@link toString}. */
  static ofHash(hash: string): SessionSecret {
    return new SessionSecret('', Buffer.from(hash, 'base64url'));
  }

  /** The hash, as text. */
  toString(): string {
    return this.hash.toString('base64url');
  }

  /** Takes the same time whether the secret is nearly right or not at all. */
  matches(secret: string | undefined): boolean {
    return secret !== undefined && timingSafeEqual(hashOf(secret), this.hash);
  }
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
