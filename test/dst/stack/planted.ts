/** Programs that are wrong, each in its own way, at a seam where trials take the place of the machine. */
import type { Connection, SpillArea, Transport } from '../../../core/api/index.ts';
import type { FileSystem } from '../../../adapters/log/file-system.ts';

/** What a planted bug changes. */
export interface Planted {
  readonly network?: (transport: Transport) => Transport;
  /** The files of a scheduler with a journal. */
  readonly journal?: (files: FileSystem) => FileSystem;
  /** Where a worker spills. */
  readonly spill?: (area: SpillArea) => SpillArea;
}

/** Breaks the contract of transports: now and then a message is lost, and its connection lives on. */
export const LOSES_MESSAGES: Planted = {
  network: (inner) => {
    let count = 0;
    const lossy = (connection: Connection): Connection =>
      new Proxy(connection, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          return (...given: unknown[]): unknown => {
            const kept = name === 'send' ? given.filter(() => ++count % 40 > 0) : given;
            return Reflect.apply(value, target, kept);
          };
        },
      });
    return {
      scheme: inner.scheme,
      listen: (address, accept) => inner.listen(address, accept),
      connect: async (address, open, options) => {
        const connection = await inner.connect(address, (made) => open(lossy(made)), options);
        return lossy(connection);
      },
    };
  },
};

/** Says that something is on the disk before it is. */
export const ACKNOWLEDGES_BEFORE_SYNC: Planted = {
  journal: (files) =>
    withChanges(files, {
      fdatasync: (_file, done) => void setImmediate(() => done(null)),
    }),
};

/** Takes a sync that has failed for one that has not. */
export const OVERLOOKS_FAILED_SYNCS: Planted = {
  journal: (files) =>
    withChanges(files, {
      fdatasync: (file, done) => files.fdatasync(file, () => done(null)),
    }),
};

/** Keeps what is written in the process until it is synced, so that the end of the process loses it. */
export const WRITES_LATE: Planted = {
  journal: (files) => {
    const waiting = new Map<number, Uint8Array[]>();
    const flush = (file: number): void => {
      for (const bytes of waiting.get(file) ?? []) files.writeSync(file, bytes, 0);
      waiting.delete(file);
    };
    return withChanges(files, {
      writeSync: (file, bytes, offset) => {
        waiting.set(file, [...(waiting.get(file) ?? []), bytes.slice(offset)]);
        return bytes.length - offset;
      },
      fdatasyncSync: (file) => {
        flush(file);
        files.fdatasyncSync(file);
      },
      fdatasync: (file, done) => {
        flush(file);
        files.fdatasync(file, done);
      },
    });
  },
};

/** Leaves out more than was torn: the last frame of a segment, always. */
export const CUTS_TOO_MUCH: Planted = {
  journal: (files) => {
    const sizeOf = (file: number): number => Math.max(0, files.fstatSync(file).size - 1);
    return withChanges(files, {
      fstatSync: (file) => ({ ...files.fstatSync(file), size: sizeOf(file), isFile: () => true }),
      readSync: (file, bytes, offset, length, position) => {
        const end = Math.max(0, sizeOf(file) - position);
        return files.readSync(file, bytes, offset, Math.min(length, end), position);
      },
    });
  },
};

/** Deletes a segment before the one that takes its place is on the disk. */
export const FORGETS_TO_SYNC_CHECKPOINTS: Planted = {
  journal: (files) => withChanges(files, { fdatasyncSync: () => undefined }),
};

/** Gives the result of another task from the disk, now and then. */
export const MIXES_UP_RESULTS: Planted = {
  spill: (area) => {
    const keys = new Set<string>();
    let reads = 0;
    const chosen = (key: string): string => {
      const other = [...keys].find((each) => each !== key);
      return ++reads % 5 === 0 && other !== undefined ? other : key;
    };
    return withChanges(area, {
      write: (key, value) => {
        area.write(key, value);
        keys.add(key);
      },
      read: (key) => area.read(chosen(key)),
      open: (key) => area.open!(chosen(key)),
      delete: (key) => {
        area.delete(key);
        keys.delete(key);
      },
    });
  },
};

/** Takes a result for written when the disk was full. */
export const OVERLOOKS_FULL_DISKS: Planted = {
  spill: (area) =>
    withChanges(area, {
      write: (key, value) => {
        try {
          area.write(key, value);
        } catch {
          // That is the bug.
        }
      },
    }),
};

/** The planted bugs of the whole program by name, and the seed from which on the search for each finds it soon. */
export const PLANTED_IN_STACK: readonly (readonly [
  name: string,
  from: number,
  planted: Planted,
])[] = [
  ['LOSES_MESSAGES', 1, LOSES_MESSAGES],
  ['ACKNOWLEDGES_BEFORE_SYNC', 3, ACKNOWLEDGES_BEFORE_SYNC],
  ['OVERLOOKS_FAILED_SYNCS', 169, OVERLOOKS_FAILED_SYNCS],
  ['WRITES_LATE', 1, WRITES_LATE],
  ['CUTS_TOO_MUCH', 1, CUTS_TOO_MUCH],
  ['FORGETS_TO_SYNC_CHECKPOINTS', 13, FORGETS_TO_SYNC_CHECKPOINTS],
  ['MIXES_UP_RESULTS', 6, MIXES_UP_RESULTS],
  ['OVERLOOKS_FULL_DISKS', 50, OVERLOOKS_FULL_DISKS],
];

function withChanges<T extends object>(target: T, changes: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
