/** Configurations with the sections of everything that is built in. */
import { briefly, YardmasterError } from '../../core/api/index.ts';
import { configReader } from '../../core/config/load.ts';
import type {
  Config as CoreConfig,
  ConfigInput as CoreConfigInput,
} from '../../core/config/types.ts';
import type { Checked, ConfigPart, Setting, Written } from '../../core/shared/settings.ts';
import { isPlainObject } from '../../core/util/values.ts';
import { ammPart } from '../../plugins/amm/settings.ts';
import { coordinationPart } from '../../plugins/coordination/settings.ts';
import { workStealingPart } from '../../plugins/work-stealing/settings.ts';
import { marsPart } from '../mars/settings.ts';

/** Collects what reports are about; it has no settings. */
const reportPart: ConfigPart = { plugin: () => ({ use: 'report', section: 'plugins' }) };

/** Of every transport: what comes after the last colon is a port, if it is a number. */
const addressPart: ConfigPart = {
  problems: ({ scheduler }) => {
    const [, port = 0] = /:(\d+)\/?$/.exec(String(scheduler?.['address'])) ?? [];
    const message = `must have a port up to 65535 (got ${port})`;
    return Number(port) > 65_535 ? [{ at: ['scheduler', 'address'], message }] : [];
  },
};

/** In the order in which their plugins are set up. */
const PARTS: readonly ConfigPart[] = [
  ammPart,
  workStealingPart,
  coordinationPart,
  reportPart,
  marsPart,
  addressPart,
];

export const configuration = configReader<Config, ConfigInput>(PARTS);

type SchedulerSections = (typeof ammPart)['scheduler'] &
  (typeof workStealingPart)['scheduler'] &
  (typeof coordinationPart)['scheduler'];
type CheckedAll<Sections> = { readonly [Name in keyof Sections]: Checked<Sections[Name]> };
type WrittenAll<Sections extends Readonly<Record<string, Setting<unknown>>>> = {
  readonly [Name in keyof Sections]?: Written<Sections[Name]>;
};

/** A configuration after it was checked: complete, frozen, times in milliseconds, sizes in bytes. */
export interface Config extends CoreConfig, CheckedAll<typeof marsPart.sections> {
  readonly scheduler: CoreConfig['scheduler'] & CheckedAll<SchedulerSections>;
}

/** A configuration as it is written; everything has a default. `docs/config.md` explains each key. */
export interface ConfigInput extends CoreConfigInput, WrittenAll<typeof marsPart.sections> {
  readonly scheduler?: NonNullable<CoreConfigInput['scheduler']> & WrittenAll<SchedulerSections>;
}

/**
 * Types a configuration that is written as a module. Returns what it is given.
 * @throws YardmasterError `ERR_CONFIG` when that is no object
 */
export function defineConfig(config: ConfigInput): ConfigInput {
  if (isPlainObject(config)) return config;
  throw new YardmasterError(
    'ERR_CONFIG',
    `defineConfig wants a configuration, an object such as { scheduler: { … }, worker: { … } }, got ${briefly(config)}`,
  );
}
