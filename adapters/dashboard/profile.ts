import type { CallTree, TaskProfile } from '../../core/api/index.ts';
import type { ProfileAnswer } from './page-messages.ts';
import type { ApiSource } from './routes.ts';
import { pushTo } from '../../core/util/collections.ts';

/** Milliseconds that workers have for an answer. */
const TIMEOUT_MS = 5000;
/** Calls with a smaller share of all samples, or of those of their prefix, are not shown. */
const SHARE_MIN = 0.002;

interface Answer {
  readonly profile?: TaskProfile | null;
  readonly error?: string;
}

/** Reads samples of the calls of running tasks from all workers: those that it has, or those of a span of time. */
export class ProfileReader {
  /** Samples that each worker had taken before the span, by address. */
  private readonly before = new Map<string, TaskProfile>();
  private readonly answers = new Map<string, Answer>();
  private hasBegun = false;

  /** @param sinceMs - the beginning of the span, which is to be read then and now and again. Default: all samples */
  constructor(
    private readonly source: Pick<ApiSource, 'run'>,
    private readonly sinceMs?: number,
  ) {}

  /** Workers sample from the first reading on, as long as it is read at least every half minute. */
  async read(): Promise<void> {
    const { sinceMs, before } = this;
    const parameters = { what: 'profile', ...(sinceMs === undefined ? {} : { sinceMs }) };
    const isBeginning = !this.hasBegun && sinceMs !== undefined;
    this.hasBegun = true;
    const answers = (await this.source.run('broadcast', {
      ...{ method: 'inspect', parameters, timeoutMs: TIMEOUT_MS },
    })) as readonly (readonly [address: string, Answer])[];
    for (const [address, answer] of answers) {
      const { profile } = answer;
      // A worker that is late does not lose what it has told.
      if (profile || !this.answers.get(address)?.profile) this.answers.set(address, answer);
      if (isBeginning && profile) before.set(address, profile);
    }
  }

  /** Reads a last time, and merges the samples of all workers. O(calls). */
  async answer(): Promise<ProfileAnswer> {
    await this.read();
    const read = [...this.answers];
    const profiles = read.flatMap(([, { profile }]) => profile ?? []);
    const intervalMs = profiles.reduce((least, one) => Math.min(least, one.intervalMs), Infinity);
    const trees = read.flatMap(([address, { profile }]) => {
      if (!profile) return [];
      const earlier = this.before.get(address);
      // What has begun to sample anew has taken all its samples since.
      const known = earlier?.sinceMs === profile.sinceMs ? Object.values(earlier.prefixes) : [];
      const weight = profile.intervalMs / intervalMs;
      return [
        ...Object.values(profile.prefixes).map((tree) => times(tree, weight)),
        ...known.map((tree) => times(tree, -weight)),
      ];
    });
    const prefixes = merged(trees)
      .filter(({ count }) => count > 0)
      .toSorted((a, b) => b.count - a.count);
    const sinceMs = profiles.reduce((least, one) => Math.min(least, one.sinceMs), Date.now());
    const reason = read.find(([, { error }]) => error !== undefined)?.[1].error;
    return {
      tree: {
        ...{ name: 'all tasks', url: '', line: 0, count: sumOf(prefixes) },
        children: prefixes.map((tree) => pruned(tree)),
      },
      intervalMs: profiles.length === 0 ? 0 : intervalMs,
      sinceS: (this.sinceMs ?? sinceMs) / 1000,
      workers: profiles.length,
      silent: read.length - profiles.length,
      ...(reason === undefined ? {} : { reason }),
    };
  }
}

/** Calls of the same function from the same place are one. O(calls). */
function merged(trees: readonly CallTree[]): readonly CallTree[] {
  const groups = new Map<string, CallTree[]>();
  for (const tree of trees) {
    const frame = `${tree.name} ${tree.url} ${tree.line}`;
    pushTo(groups, frame, tree);
  }
  return Array.from(groups.values(), (same) => ({
    ...(same[0] as CallTree),
    count: sumOf(same),
    children: merged(same.flatMap(({ children }) => children)),
  }));
}

const sumOf = (trees: readonly CallTree[]): number =>
  trees.reduce((sum, { count }) => sum + count, 0);

function times(tree: CallTree, factor: number): CallTree {
  const children = tree.children.map((child) => times(child, factor));
  return { ...tree, count: factor * tree.count, children };
}

/** Without the calls that would be too narrow to be seen, and those that a subtraction leaves without samples. */
export function pruned(tree: CallTree, countMin = Math.max(1, SHARE_MIN * tree.count)): CallTree {
  const children = tree.children.filter(({ count }) => count >= countMin);
  return { ...tree, children: children.map((child) => pruned(child, countMin)) };
}
