import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { openResultStore } from '../../../adapters/stores/open-result-store.ts';
import { ActiveMemoryManagerPolicy, type SuggestionGenerator } from '../../../core/api/index.ts';
import { AT_RUN_TIME } from '../../../core/plugin-host/extension-options.ts';
import { blueprintOf } from '../../../core/plugin-host/load-extensions.ts';
import { startHost } from '../../kit/test-host.ts';

const definition = { name: 'x', setup: () => undefined, create: () => ({}) };
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-versions-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const nowhere = 'tcp://127.0.0.1:1';

const starts = (scheduler: object): Promise<unknown> => startHost(scheduler);

function blueprint(kind: 'worker-plugin' | 'nanny-plugin', apiVersion: unknown): Promise<unknown> {
  const resolved = { exported: { ...definition, kind, apiVersion }, source: 'code' };
  return Promise.resolve().then(() =>
    blueprintOf(resolved, { kind, onError: 'log', place: AT_RUN_TIME }),
  );
}

/** How each kind of extension is given to its owner, of a version that is written down. */
const KINDS: Readonly<Record<string, (apiVersion: unknown) => Promise<unknown>>> = {
  'a plugin of the scheduler': async (apiVersion) => {
    const { scheduler } = await startHost();
    return scheduler.addPlugin({ ...definition, kind: 'plugin', apiVersion });
  },
  'a plugin in the form of a class': async (apiVersion) => {
    const { scheduler } = await startHost();
    class X {
      static apiVersion = apiVersion;
      restarted(): void {
        /* A hook. */
      }
    }
    return scheduler.addPlugin(new X());
  },
  'a policy': (apiVersion) => {
    const use = { ...definition, kind: 'policy', slot: 'ordering', apiVersion };
    return starts({ policies: { ordering: { use } } });
  },
  'a policy of the Active Memory Manager': (apiVersion) => {
    class X extends ActiveMemoryManagerPolicy {
      static override readonly apiVersion = apiVersion as 1;
      *run(): SuggestionGenerator {
        /* It suggests nothing. */
      }
    }
    return starts({ activeMemoryManager: { policies: [{ use: X }] } });
  },
  'a transport': (apiVersion) => {
    const use = { ...definition, kind: 'transport', apiVersion };
    return starts({ transport: { use } });
  },
  'a plugin of workers': (apiVersion) => blueprint('worker-plugin', apiVersion),
  'a plugin of nannies': (apiVersion) => blueprint('nanny-plugin', apiVersion),
  'an executor': (apiVersion) => {
    const executor = new InlineExecutor({ clock: new VirtualClock(), threadCount: 1 });
    return startWorker(nowhere, { executor: Object.assign(executor, { apiVersion }) as never });
  },
  'a store of results': (apiVersion) => {
    const use = join(folder, `store-${JSON.stringify(apiVersion)}.mjs`);
    const store = { ...definition, kind: 'store', apiVersion };
    writeFileSync(use, `export default ${JSON.stringify({ ...store, create: 0 })};`);
    return openResultStore({ use });
  },
};

describe.each(Object.entries(KINDS))('%s', (_kind, load) => {
  it.each([
    [2, 'is written for version 2 of the contract of extensions, and this is version 1: update'],
    [0, 'is written for version 0 of the contract of extensions, and this is version 1: install'],
    ['1', 'its apiVersion must be the number 1 (got "1")'],
  ])('of version %o is refused with what to do', async (version, says) => {
    await expect(load(version)).rejects.toThrow(says);
  });
});
