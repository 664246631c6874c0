import { statSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls';

/**
 * Certificates that are read again when one of their files has changed. What cannot be used, such as a certificate
 * whose key has not been written yet, is warned of, and the ones before stay.
 */
export class RenewedFiles<T extends SecureContextOptions> {
  private value: T;
  private stamp: string;

  /**
   * @param read - throws when the certificates cannot be used
   * @throws what `read` throws at first
   */
  constructor(
    private readonly files: readonly string[],
    private readonly read: () => T,
  ) {
    this.stamp = this.stampOfFiles();
    this.value = read();
  }

  /** The same object until the files have changed. */
  get current(): T {
    const stamp = this.stampOfFiles();
    if (stamp === this.stamp) return this.value;
    this.stamp = stamp;
    try {
      const next = this.read();
      createSecureContext(next);
      this.value = next;
    } catch (error) {
      process.emitWarning(
        `${this.files.join(', ')} have changed and cannot be used, so that the certificates before stay: ${(error as Error).message}`,
      );
    }
    return this.value;
  }

  /** Has a server use what is current at each next connection. Connections that are open stay. */
  renew(server: Server): void {
    let used = this.current;
    server.prependListener('connection', () => {
      const { current } = this;
      if (current === used) return;
      used = current;
      server.setSecureContext(current);
    });
  }

  private stampOfFiles(): string {
    return this.files.map(stampOf).join(' ');
  }
}

function stampOf(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? 'none' : `${stats.ino}-${stats.mtimeMs}-${stats.size}`;
}
