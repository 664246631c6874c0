import { YardmasterError } from '../../../core/api/index.ts';
import { pathText, type Segment } from '../../../core/config/errors.ts';
import { show } from '../../../core/shared/words.ts';
import type { ConfigInput } from '../../../core/config/types.ts';
import type { DaskEntry } from '../../dask/config/index.ts';
import { type ReadValue, UnusableValue } from './values.ts';

/** A key of Dask's configuration that has an effect. */
export interface TakenSetting extends DaskEntry {
  /** Places in our configuration; `dask.…` are options of the plugin `dask`. */
  readonly to: readonly string[];
}

/** A key of Dask's configuration that has none. */
export interface IgnoredSetting extends DaskEntry {
  readonly reason: string;
}

/** Collects what Dask's configuration means here, and every problem with it. */
export class SettingsBuilder {
  private readonly config: Record<string, unknown> = {};
  private readonly options: Record<string, unknown> = {};
  private readonly taken: TakenSetting[] = [];
  private readonly ignored: IgnoredSetting[] = [];
  private readonly problems: (DaskEntry & { readonly message: string })[] = [];

  settings(): {
    config: ConfigInput;
    options: Readonly<Record<string, unknown>>;
    taken: readonly TakenSetting[];
    ignored: readonly IgnoredSetting[];
  } {
    const { config, options, taken, ignored } = this;
    return { config: config, options, taken, ignored };
  }

  /** Puts a value at dotted places. @param read - undefined: only remember that it is taken */
  take(entry: DaskEntry, to: readonly string[], read: ReadValue | undefined): void {
    this.markTaken(entry, to);
    if (read === undefined) return;
    this.read(entry, read, (value) => {
      for (const place of to) {
        const [root, ...path] = place.split('.');
        if (root === 'dask') put(this.options, path, value);
        else put(this.config, [root as string, ...path], timeAt(place, value));
      }
    });
  }

  /** Puts a value at one place of our configuration. */
  takeAt(entry: DaskEntry, path: readonly string[], read: ReadValue): void {
    this.markTaken(entry, [pathText(path)]);
    this.read(entry, read, (value) => put(this.config, path, value));
  }

  markTaken(entry: DaskEntry, to: readonly string[]): void {
    this.taken.push({ ...entry, to });
  }

  ignore(entry: DaskEntry, reason: string): void {
    this.ignored.push({ ...entry, reason });
  }

  addProblem(entry: DaskEntry, message: string): void {
    this.problems.push({ ...entry, message });
  }

  /** Whether a key is taken or ignored already. */
  isKnown(key: string): boolean {
    return [...this.taken, ...this.ignored].some((entry) => entry.key === key);
  }

  /** The key of Dask behind a place of our configuration, or behind one above it. */
  takenAt(path: string): TakenSetting | undefined {
    return this.taken.find(({ to }) =>
      to.some(
        (place) => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`),
      ),
    );
  }

  /** Options of the queuing policy belong to the policy that follows Dask's rules. */
  completePolicies(): void {
    const { policies } = (this.config['scheduler'] ?? {}) as {
      policies?: { queuing?: Record<string, unknown> };
    };
    if (policies?.queuing !== undefined) policies.queuing['use'] = 'root-ish';
  }

  /** @throws YardmasterError `ERR_CONFIG` with all problems, one line each */
  throwProblems(): void {
    const { problems } = this;
    if (problems.length === 0) return;
    const lines = problems.map(
      ({ key, value, source, message }) => `${source}: ${key} ${withValue(message, value)}`,
    );
    const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
    throw new YardmasterError(
      'ERR_CONFIG',
      `Dask's configuration has ${count}:\n${lines.map((line) => `  ${line}`).join('\n')}`,
      {
        problems: problems.map(({ key, message }, index) => ({
          path: key,
          message,
          line: lines[index],
        })),
      },
    );
  }

  private read(entry: DaskEntry, read: ReadValue, use: (value: unknown) => void): void {
    try {
      use(read(entry.value));
    } catch (error) {
      if (!(error instanceof UnusableValue)) throw error;
      this.addProblem(entry, error.message);
    }
  }
}

function withValue(message: string, value: unknown): string {
  return message.includes('(got ') ? message : `${message} (got ${show(value)})`;
}

/** A bare number would be seconds in our configuration. */
function timeAt(place: string, value: unknown): unknown {
  return place.endsWith('leaseTimeout') ? `${String(value)} ms` : value;
}

function put(root: Record<string, unknown>, path: readonly Segment[], value: unknown): void {
  let at = root;
  for (const segment of path.slice(0, -1)) {
    at = (at[segment] ??= {}) as Record<string, unknown>;
  }
  Object.defineProperty(at, String(path.at(-1)), {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
