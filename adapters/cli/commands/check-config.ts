import { YardmasterError } from '../../../core/api/index.ts';
import { describeDaskSettings, readDaskSettings } from '../../app/dask-settings.ts';
import { checkConfig } from '../../app/start-scheduler.ts';
import { type LogFlags, say, stderrLogger } from '../terminal.ts';

export interface CheckConfigFlags extends LogFlags {
  /** Also read Dask's own configuration. */
  readonly dask?: boolean;
  readonly python?: string;
  readonly json?: boolean;
}

/**
 * `yardmaster check-config`. Prints what the configuration would start, and with `--dask` what Dask's own
 * configuration means here.
 */
export async function checkConfigCommand(
  file: string | undefined,
  flags: CheckConfigFlags,
): Promise<number> {
  if (file === undefined && flags.dask !== true) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'there is nothing to check: name a configuration file, or add --dask for that of Dask',
    );
  }
  checkDaskOnly(flags);
  const log = stderrLogger(flags, 'check-config');
  const settings = flags.dask === true ? readDaskSettings(process.env, flags.python) : undefined;
  const layers = settings === undefined ? {} : { defaults: settings.config };
  const report = await checkConfig({
    log,
    layers,
    config: file,
  });
  if (flags.json === true) {
    const starts = report.split('\n');
    const { config, options, preload, taken, ignored } = settings ?? {};
    const json = { file, starts, config, options, preload, taken, ignored };
    say(`${JSON.stringify(json, undefined, 2)}\n`);
    return 0;
  }
  if (settings !== undefined) say(`${describeDaskSettings(settings)}\n\n`);
  say(`${file ?? 'The configuration'} is fine. It would start:\n${report}\n`);
  return 0;
}

/** @throws YardmasterError `ERR_CONFIG` for a flag that says something about Dask's configuration only */
function checkDaskOnly({ dask, python }: CheckConfigFlags): void {
  if (dask === true || python === undefined) return;
  throw new YardmasterError('ERR_CONFIG', "--python concerns Dask's configuration; add --dask");
}
