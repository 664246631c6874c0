import type { LoadedConfig } from '../../config/load.ts';
import { blueprintOf } from './plugin-blueprint.ts';
import { PluginResolver } from './plugin-resolver.ts';
import { Preloads } from './preloads.ts';
import { ProblemList } from './problem-list.ts';
import { UniqueNames } from './unique-names.ts';
import type { Clock } from '../../api/clock.ts';
import type { Logger } from '../../api/plugin.ts';

/**
 * Loads what the section `worker` names, and checks its options. Nothing of it is set up.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function checkWorkerExtensions(
  { config, origin, folder }: LoadedConfig,
  around: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const { worker } = config;
  const resolver = new PluginResolver({}, folder);
  const problems = new ProblemList(origin);
  for (const [field, kind] of [
    ['plugins', 'worker-plugin'],
    ['nannyPlugins', 'nanny-plugin'],
  ] as const) {
    const unique = new UniqueNames(`${kind.replace('-', ' ')}s`, origin);
    for (const [index, { use, options, onError }] of worker[field].entries()) {
      const at = ['worker', field, index];
      const place = { origin, optionsAt: [...at, 'options'] };
      const given = options === undefined ? {} : { options };
      await problems.attempt(at, async () => {
        const resolved = await resolver.resolve(use, kind);
        const { name, source } = blueprintOf(resolved, { kind, onError, place, ...given });
        unique.add(name, source, at);
      });
    }
  }
  for (const [field, role] of [
    ['preload', 'worker'],
    ['nannyPreload', 'nanny'],
  ] as const) {
    const place = { origin, at: ['worker', field] };
    await problems.attempt(undefined, () =>
      Preloads.load(worker[field], resolver, { role, ...around }, place),
    );
  }
  problems.throwIfAny();
}
