import type { Provider } from '../api/token.ts';
import { hint } from '../config/errors.ts';
import { type Container, nameOf, providerError } from '../plugin-host/injection/container.ts';
import type { Blueprint } from '../plugin-host/loading/plugin-blueprint.ts';
import { LOADING_MODULE, SCHEDULER_MODULE } from './module.ts';

/**
 * Registers the collaborators that the program around the scheduler replaces.
 * @throws YardmasterError `ERR_PROVIDER` for a token that no collaborator has
 */
export function replaceForProgram(container: Container, provide: readonly Provider[] = []): void {
  for (const { token } of provide) checkKnown(token, [...LOADING_MODULE, ...SCHEDULER_MODULE]);
  container.register(provide);
}

/**
 * Registers the collaborators that the configured plugins replace, but for those of the program.
 * @throws YardmasterError `ERR_PROVIDER` when two plugins replace the same one, or one that is in use already
 */
export function replaceForPlugins(
  container: Container,
  blueprints: readonly Blueprint[],
  program: readonly Provider[] = [],
): void {
  const owners = new Map<symbol, string>();
  const kept = new Set(program.map(({ token }) => token.id));
  for (const { name, provide } of blueprints) {
    for (const { token } of provide) {
      checkKnown(token, SCHEDULER_MODULE);
      const other = owners.get(token.id);
      if (other !== undefined) {
        const what = `is replaced by the plugins "${other}" and "${name}"; remove one of both`;
        throw providerError(token, what);
      }
      owners.set(token.id, name);
    }
    container.register(provide.filter(({ token }) => !kept.has(token.id)));
  }
}

function checkKnown(token: Provider['token'] | undefined, known: readonly Provider[]): void {
  if (known.some((provider) => provider.token.id === token?.id)) return;
  const names = known.map((provider) => nameOf(provider.token));
  const isEarly = LOADING_MODULE.some((provider) => provider.token.id === token?.id);
  throw providerError(
    token,
    isEarly
      ? 'is in use before plugins are loaded; replace it with createScheduler({ provide })'
      : `does not exist${hint(nameOf(token), names)}; there are ${names.join(', ')}`,
  );
}
