import { SystemClock } from '../../clocks/index.ts';
import { Reach } from '../../peers/task-reach.ts';
import { AllowedModules, type TaskSurroundings } from '../../tasks/index.ts';
import { type TunnelRequest, TunnelTransport } from '../../transports/tunnel/index.ts';
import type { ThreadData } from './messages.ts';

/**
 * What the tasks of a thread reach: all that their worker reaches, through it.
 * @param open - asks the worker for a connection
 */
export function surroundingsOfThread(
  { cluster }: ThreadData,
  open: (request: TunnelRequest) => void,
): TaskSurroundings | undefined {
  if (cluster === undefined) return undefined;
  const transports = cluster.schemes.map((scheme) => new TunnelTransport(scheme, open));
  const { scheduler, moduleFolders, codeRoot, reconnect } = cluster;
  const modules = moduleFolders && new AllowedModules(moduleFolders, codeRoot);
  return new Reach({ scheduler, transports, modules, reconnect }, new SystemClock());
}
