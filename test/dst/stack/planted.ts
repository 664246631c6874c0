/** Programs that are wrong, each in its own way, at a seam where trials take the place of the machine. */
import type { Connection, SpillArea, Transport } from '../../../core/api/index.ts';
import { Journal } from '../../../adapters/app/journal.ts';
import { UncommittedReports } from '../../../adapters/client/outgoing.ts';
import type { FileSystem } from '../../../adapters/log/segment-file.ts';
import { SchedulerKernel } from '../../../core/kernel/kernel.ts';
import type { KernelScope } from '../../../core/kernel/scope.ts';
import type { ClientReport } from '../../../core/messages/from-client.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import type { ToWorkerMessage } from '../../../core/messages/to-worker.ts';

/** What a planted bug changes. */
export interface Planted {
  readonly network?: (transport: Transport) => Transport;
  /** The files of a scheduler with a journal. */
  readonly journal?: (files: FileSystem) => FileSystem;
  /** Where a worker spills. */
  readonly spill?: (area: SpillArea) => SpillArea;
  /** Changes the product itself, until the returned function is called. */
  readonly patch?: () => () => void;
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

type Method = (this: never, ...given: never[]) => unknown;

/** A bug in a method of a class: calls `wrong` in its place, with the object, the right method, and what that is given. */
function inMethod<K extends string, T extends Record<K, (...given: never[]) => unknown>>(
  owner: { readonly prototype: T },
  name: K,
  wrong: (self: T, right: T[K], given: Parameters<T[K]>) => unknown,
): Planted {
  return {
    patch: () => {
      const target = owner.prototype as unknown as Record<string, Method>;
      const right = target[name] as Method;
      target[name] = function (this: T, ...given: Parameters<T[K]>) {
        return wrong(this, right as T[K], given);
      } as unknown as Method;
      return () => {
        target[name] = right;
      };
    },
  };
}

/** A bug in what the scheduler's kernel is told. @param change - undefined: the stimulus is overlooked */
function inStimuli(
  change: (stimulus: Stimulus, kernel: SchedulerKernel) => Stimulus | undefined,
): Planted {
  return inMethod(SchedulerKernel, 'handle', (self, right, [stimulus, nowMs]) => {
    const changed = change(stimulus, self);
    if (changed !== undefined) return right.call(self, changed, nowMs);
    return { toWorkers: [], toClients: [], events: [] };
  });
}

/** A message to workers that is not sent. */
function unsent(isUnsent: (message: ToWorkerMessage) => boolean): Planted {
  return inMethod(SchedulerKernel, 'handle', (self, right, given) => {
    const outbox = right.apply(self, given);
    return {
      ...outbox,
      toWorkers: outbox.toWorkers.filter(({ message }) => !isUnsent(message)),
    };
  });
}

/** An entry that the journal lacks. */
function unwritten(isUnwritten: (stimulus: Stimulus) => boolean): Planted {
  return inMethod(Journal, 'before', (self, right, [stimulus]) => {
    if (isUnwritten(stimulus)) self.noteReport(stimulus);
    else right.call(self, stimulus);
  });
}

function everyNth(n: number): () => boolean {
  let count = 0;
  return () => ++count % n === 0;
}

const withRetries = (change: number): Planted =>
  inStimuli((stimulus) => {
    if (stimulus.op !== 'update-graph') return stimulus;
    const tasks = stimulus.tasks.map((task) => ({
      ...task,
      ...((task.retries ?? 0) > 0 ? { retries: (task.retries ?? 0) + change } : {}),
    }));
    return { ...stimulus, tasks };
  });

/** What the search did not find once. */
const LOSES_THE_LAST_REPORT = inMethod(UncommittedReports, 'all', (self, right) => {
  const reports: (readonly ClientReport[])[] = right.call(self);
  return reports.length > 1 ? reports.slice(0, -1) : reports;
});
const RETRIES_FOR_EVER = inMethod(SchedulerKernel, 'handle', (self, right, given) => {
  const [stimulus] = given;
  const task = stimulus.op === 'task-erred' ? self.cluster.tasks.get(stimulus.key) : undefined;
  const before = task?.retries ?? 0;
  const outbox = right.apply(self, given);
  if (task !== undefined && task.state !== 'erred') task.retries = before;
  return outbox;
});
const LIMIT_IS_ONE_MORE = inStimuli((stimulus) => {
  if (stimulus.op !== 'update-graph') return stimulus;
  const tasks = stimulus.tasks.map((task) =>
    task.limit === undefined
      ? task
      : { ...task, limit: { ...task.limit, max: (task.limit.max ?? 0) + 1 } },
  );
  return { ...stimulus, tasks };
});
const KEEPS_UNCLAIMED_RESULTS = inMethod(SchedulerKernel, 'handle', (self, right, given) => {
  const [{ op }] = given;
  const { scope } = self as unknown as { readonly scope: KernelScope };
  if (op === 'end-recovery') scope.recovery?.unclaimed.clear();
  return right.apply(self, given);
});

/** Further bugs, each of another kind. */
const FORGETS_RESULTS = inStimuli((stimulus) => {
  if (stimulus.op !== 'register-worker') return stimulus;
  const { held, ...rest } = stimulus;
  return held === undefined ? stimulus : rest;
});
const LOSES_FREEING = (() => {
  const isLost = everyNth(5);
  return unsent(({ op }) => op === 'free-keys' && isLost());
})();
const OVERLOOKS_CANCELS = inStimuli((stimulus) =>
  stimulus.op === 'cancel-keys' ? undefined : stimulus,
);
const OVERLOOKS_RELEASES = (() => {
  const isLost = everyNth(7);
  return inStimuli((stimulus) =>
    stimulus.op === 'client-releases-keys' && isLost() ? undefined : stimulus,
  );
})();
const SAYS_NOTHING_AGAIN = inMethod(UncommittedReports, 'all', () => []);
const ACKNOWLEDGES_THE_NEXT = inMethod(Journal, 'committedOf', (self, right, given) => {
  const upTo = right.apply(self, given);
  return upTo === 0 ? 0 : upTo + 1;
});

/** Found by runs against retries, concurrency, priorities, what is kept, and what was given up. */
const BY_NEW_ORACLES: readonly (readonly [name: string, from: number, planted: Planted])[] = [
  ['LOSES_THE_LAST_REPORT', 19, LOSES_THE_LAST_REPORT],
  ['RETRIES_FOR_EVER', 1, RETRIES_FOR_EVER],
  ['ONE_RETRY_TOO_FEW', 1, withRetries(-1)],
  ['LIMIT_IS_ONE_MORE', 2, LIMIT_IS_ONE_MORE],
  ['SENDS_NO_PRIORITIES', 76, unsent(({ op }) => op === 'set-priority')],
  ['KEEPS_UNCLAIMED_RESULTS', 3, KEEPS_UNCLAIMED_RESULTS],
  ['WRITES_NO_CANCELS', 144, unwritten(({ op }) => op === 'cancel-keys')],
  ['ONE_RETRY_TOO_MANY', 43, withRetries(1)],
  ['FORGETS_RESULTS', 1, FORGETS_RESULTS],
  ['LOSES_FREEING', 1, LOSES_FREEING],
  ['OVERLOOKS_CANCELS', 1, OVERLOOKS_CANCELS],
  ['OVERLOOKS_RELEASES', 1, OVERLOOKS_RELEASES],
  ['SAYS_NOTHING_AGAIN', 1, SAYS_NOTHING_AGAIN],
  ['WRITES_NO_PRIORITIES', 114, unwritten(({ op }) => op === 'set-priority')],
  ['WRITES_NO_GRAPHS', 1, unwritten(({ op }) => op === 'update-graph')],
  ['ACKNOWLEDGES_THE_NEXT', 1, ACKNOWLEDGES_THE_NEXT],
];

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
  ['FORGETS_TO_SYNC_CHECKPOINTS', 39, FORGETS_TO_SYNC_CHECKPOINTS],
  ['MIXES_UP_RESULTS', 6, MIXES_UP_RESULTS],
  ['OVERLOOKS_FULL_DISKS', 50, OVERLOOKS_FULL_DISKS],
  ...BY_NEW_ORACLES,
];

function withChanges<T extends object>(target: T, changes: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
