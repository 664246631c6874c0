import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { Clock, Transport } from '../../core/api/index.ts';
import { removePrivateFolder } from '../log/private-folder.ts';

/** How the processes of a local cluster reach each other: with new keys, which other users cannot read. */
export interface LocalKeys {
  readonly transport: Transport;
  /** Path of the access file of the scheduler at this address. */
  fileFor(address: string): string;
  /** Deletes what the transport does not delete when it stops listening. */
  remove(): void;
}

/**
 * The access file is that of the scheduler's port, where other processes of the same user find it. Where the home
 * folder cannot be written, it is in a new folder for temporary files, and only the workers get its path.
 */
export async function localKeys(clock: Clock): Promise<LocalKeys> {
  const { accessFileFor, accessFolder, TlsTransport } = await import('../transports/tls/index.ts');
  const access = isWritable(accessFolder()) ? undefined : temporaryFile();
  return {
    transport: new TlsTransport(clock, {
      environment: false,
      ...(access === undefined ? {} : { access }),
    }),
    fileFor: (address) => accessFileFor(address, access, false).path,
    remove: () => {
      if (access !== undefined) removePrivateFolder(dirname(access));
    },
  };
}

/** Its folder is made with the file, for this user alone. */
function temporaryFile(): string {
  return join(tmpdir(), `yardmaster-access-${randomBytes(8).toString('hex')}`, 'access.json');
}

function isWritable(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
