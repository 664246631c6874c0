import type { RpcTable } from '../context.ts';
import { DIAGNOSTICS } from './diagnostics.ts';
import { FLEET } from './fleet.ts';
import { IDENTITY } from './identity.ts';
import { MEMBERSHIP } from './membership.ts';
import { PLUGINS } from './plugins.ts';
import { RESTART } from './restart.ts';
import { RESULTS } from './results.ts';
import { TABLES } from './tables.ts';
import { UNSUPPORTED } from './unsupported.ts';

/** Everything that can be asked of the scheduler by name, and needs no memory of its own. */
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
