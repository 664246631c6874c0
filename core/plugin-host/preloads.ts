import { isDeepStrictEqual } from 'node:util';
import { YardmasterError } from '../api/errors.ts';
import type { PreloadContext, PreloadModule } from '../api/local-plugins.ts';
import type { UseEntry } from '../api/plugin.ts';
import { type ConfigOrigin, IN_CODE, type Segment } from '../config/check.ts';
import { withTimeout } from '../host/answers.ts';
import { ProblemList, UniqueNames } from './extension-options.ts';
import type { PluginResolver } from './plugin-resolver.ts';

/** Time that a module has for each of both. */
const PHASE_TIMEOUT_MS = 10_000;

interface Preload {
  readonly source: string;
  readonly module: PreloadModule;
  readonly options: unknown;
}

/** Where a configuration names them. */
interface PreloadPlace {
  readonly origin: ConfigOrigin;
  readonly at: readonly Segment[];
}

const IN_CODE_PLACE: PreloadPlace = { origin: IN_CODE, at: ['preload'] };

/** Modules that are loaded before anything starts. */
export class Preloads {
  private readonly begun: Preload[] = [];

  private constructor(
    private readonly loaded: readonly Preload[],
    private readonly context: PreloadContext,
  ) {}

  /**
   * Loads them; nothing of them runs but the modules themselves.
   * @throws YardmasterError `ERR_PLUGIN_LOAD` when one does not exist, or has nothing to call
   */
  static async load(
    entries: readonly UseEntry[],
    resolver: PluginResolver,
    context: PreloadContext,
    { origin, at }: PreloadPlace = IN_CODE_PLACE,
  ): Promise<Preloads> {
    const loaded: Preload[] = [];
    const problems = new ProblemList(origin);
    const unique = new UniqueNames('preloads', origin);
    for (const [index, { use, options = {} }] of entries.entries()) {
      await problems.attempt([...at, index], async () => {
        const { exported, source } = await resolver.resolveModule(use, 'preload module');
        const module = checked(exported, source);
        // With other options it is another preload: nothing replaces anything.
        const duplicate = loaded.findIndex(
          (other) => other.source === source && isDeepStrictEqual(other.options, options),
        );
        unique.add(
          source,
          source,
          [...at, index],
          String(duplicate < 0 ? loaded.length : duplicate),
        );
        loaded.push({ source, module, options });
      });
    }
    problems.throwIfAny();
    return new Preloads(loaded, context);
  }

  /** One after the other. What one throws is logged, and the next one follows. */
  async setUp(): Promise<void> {
    for (const preload of this.loaded) {
      this.begun.push(preload);
      await this.attempt('setup', preload);
    }
  }

  /** In reverse order, each that was begun. Never rejects. */
  async close(): Promise<void> {
    for (const preload of this.begun.splice(0).reverse()) await this.attempt('close', preload);
  }

  private async attempt(phase: 'setup' | 'close', preload: Preload): Promise<void> {
    const { module, options, source } = preload;
    const { clock, log } = this.context;
    try {
      const running = Promise.resolve(module[phase]?.(this.context, options));
      await withTimeout(clock, running, PHASE_TIMEOUT_MS, () => {
        const message = `it took longer than ${PHASE_TIMEOUT_MS / 1000} s`;
        return new YardmasterError('ERR_TIMEOUT', message, { source, phase });
      });
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      log.error({ err: thrown, source, phase }, `${phase} of the preload ${source} failed: ${why}`);
    }
  }
}

function checked(exported: unknown, source: string): PreloadModule {
  const found = (exported ?? {}) as Record<string, unknown>;
  if (typeof found['teardown'] === 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the preload ${source} exports a function teardown, which nothing calls; did you mean "close"?`,
      { source },
    );
  }
  const isUsable = ['setup', 'close'].some((name) => typeof found[name] === 'function');
  if (isUsable) return found;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `the preload ${source} exports neither a function setup nor a function close`,
    { source },
  );
}
