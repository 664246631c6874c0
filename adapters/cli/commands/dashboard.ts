import { openPast } from '../../app/past.ts';
import { countOf, printable } from '../../../core/util/values.ts';
import { untilStopped } from '../with-client.ts';
import { say } from '../terminal.ts';

export interface DashboardFlags {
  readonly port?: number;
  readonly allowPolicies?: boolean;
}

/** The host at which the pages over a log are served. */
const HOST = '127.0.0.1';

export async function dashboardCommand(
  path: string,
  { port = 8787, allowPolicies = false }: DashboardFlags,
): Promise<number> {
  const past = await openPast(path, { allowPolicies });
  const { openPastDashboard } = await import('../../dashboard/past.ts');
  const dashboard = await openPastDashboard(past, { host: HOST, port });
  const { fromS, toS } = past.samples.range;
  const lines = [
    `${past.kind} ${printable(past.title)}: ${countOf(past.samples.recorder.count, 'action')} of tasks in ${(toS - fromS).toFixed(1)} s`,
    ...past.notes.map((note) => printable(note)),
    `dashboard: ${dashboard.url}`,
    'Ctrl-C ends it.',
  ];
  say(`${lines.join('\n')}\n`);
  let end: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (end = resolve));
  return untilStopped({ closed, close: () => dashboard.close().then(end) });
}
