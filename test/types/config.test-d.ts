/** The types of a configuration follow from the schemas of its settings. */
import { expectTypeOf, test } from 'vitest';
import { type Config, type ConfigInput, defineConfig } from '../../adapters/app/config.ts';

type Scheduler = Config['scheduler'];
type AmmConfig = Scheduler['activeMemoryManager'];
type OnError = Scheduler['plugins'][number]['onError'];
type WorkerInput = NonNullable<ConfigInput['worker']>;

test('a setting with a default has a value, and one without may have none', () => {
  expectTypeOf<Scheduler['workerTtl']>().toEqualTypeOf<number>();
  expectTypeOf<Scheduler['transitionCounterMax']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<AmmConfig['policies'][number]['use']>().toEqualTypeOf<unknown>();
  expectTypeOf<OnError>().toEqualTypeOf<'log' | 'disable' | 'crash'>();
  expectTypeOf<Config['worker']['resources']>().toEqualTypeOf<Readonly<Record<string, number>>>();
});

test('a time may be written with a unit, and null means inf where that is allowed', () => {
  expectTypeOf<WorkerInput['lifetime']>().toEqualTypeOf<string | number | null | undefined>();
  expectTypeOf<WorkerInput['lifetimeStagger']>().toEqualTypeOf<string | number | undefined>();
});

test('a misspelt key or word does not compile', () => {
  // @ts-expect-error: lifetime
  defineConfig({ worker: { lifetme: '1h' } });
  // @ts-expect-error: optimistic
  defineConfig({ scheduler: { rebalance: { measure: 'optimstic' } } });
});
