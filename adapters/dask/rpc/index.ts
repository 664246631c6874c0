import type { RpcTable } from '../context.ts';
import { DIAGNOSTICS } from './cluster/diagnostics.ts';
import { FLEET } from './workers/fleet.ts';
import { IDENTITY } from './cluster/identity.ts';
import { MEMBERSHIP } from './workers/membership.ts';
import { PLUGINS } from './workers/plugins.ts';
import { RESTART } from './workers/restart.ts';
import { RESULTS } from './tasks/results.ts';
import { TABLES } from './cluster/tables.ts';
import { UNSUPPORTED } from './unsupported.ts';

/** The requests to the scheduler, by name, that need no state between calls. */
export const RPC: RpcTable = {
  ...UNSUPPORTED,
  ...IDENTITY,
  ...MEMBERSHIP,
  ...TABLES,
  ...RESULTS,
  ...FLEET,
  ...RESTART,
  ...PLUGINS,
  ...DIAGNOSTICS,
};
