import type { Provider } from '../../api/token.ts';
import { hint } from '../../shared/words.ts';
import {
  checkedService,
  type Container,
  isToken,
  nameOf,
  noToken,
  providerError,
} from './container.ts';

/** What may be replaced in a host. */
interface Replaceable {
  readonly module: readonly Provider[];
  /** Collaborators that are in use before plugins are loaded, so that only a program can replace them. */
  readonly early?: readonly Provider[];
}

/** A plugin of the configuration that may replace collaborators. */
export interface ProvidingPlugin {
  readonly name: string;
  readonly provide: readonly Provider[];
}

/**
 * Registers the collaborators that the program around a host replaces.
 * @throws YardmasterError `ERR_PROVIDER` for a token that no collaborator has, or that is provided twice
 */
export function replaceForProgram(
  container: Container,
  { module, early = [] }: Replaceable,
  provide: readonly Provider[] = [],
): void {
  const seen = new Set<symbol>();
  for (const provider of provide) {
    const { token } = provider;
    checkKnown(token, { module: [...early, ...module] });
    if (seen.has(token.id)) throw providerError(token, 'is provided twice; remove one of both');
    seen.add(token.id);
    checkValue(provider);
  }
  container.register(provide);
}

/**
 * Registers the collaborators that the configured plugins replace, but for those of the program.
 * @throws YardmasterError `ERR_PROVIDER` when two plugins replace the same one, or one that is in use already
 */
export function replaceForPlugins(
  container: Container,
  replaceable: Replaceable,
  plugins: readonly ProvidingPlugin[],
  program: readonly Provider[] = [],
): void {
  const owners = new Map<symbol, string>();
  const kept = new Set(program.map(({ token }) => token.id));
  for (const { name, provide } of plugins) {
    for (const provider of provide) {
      const { token } = provider;
      checkKnown(token, replaceable);
      const other = owners.get(token.id);
      if (other !== undefined) {
        const by =
          other === name
            ? `twice by the plugin "${name}"`
            : `by the plugins "${other}" and "${name}"`;
        throw providerError(token, `is replaced ${by}; remove one of both`);
      }
      owners.set(token.id, name);
      checkValue(provider);
    }
    container.register(provide.filter(({ token }) => !kept.has(token.id)));
  }
}

/**
 * Refuses a plugin that replaces collaborators of what runs already: they hold each other directly.
 * @throws YardmasterError `ERR_PROVIDER`
 */
export function refuseProviders({ name, provide }: ProvidingPlugin, host: string): void {
  const [first] = provide;
  if (first === undefined) return;
  const what = `cannot be replaced by the plugin "${name}" while the ${host} runs; list the plugin in the configuration`;
  throw providerError(first.token, what);
}

function checkValue(provider: Provider): void {
  if ('useValue' in provider) checkedService(provider.token, provider.useValue, 'useValue is');
}

function checkKnown(token: Provider['token'], { module, early = [] }: Replaceable): void {
  if (!isToken(token)) throw noToken('a provider', token);
  if (module.some((provider) => provider.token.id === token.id)) return;
  const names = module.map((provider) => nameOf(provider.token));
  const isEarly = early.some((provider) => provider.token.id === token.id);
  throw providerError(
    token,
    isEarly
      ? 'is in use before plugins are loaded; replace it with createScheduler({ provide })'
      : `does not exist${hint(nameOf(token), names)}; there are ${names.join(', ')}`,
  );
}
