/** `performance_report`: one HTML file about the work between two moments. */
import { VERSION } from '../../../core/api/index.ts';
import { asset } from '../../dashboard/asset.ts';
import { numberIn } from '../codec/values.ts';
import type { DaskContext, Fields } from '../context.ts';
import { logs, profile } from '../rpc/cluster/diagnostics.ts';
import { figuresOf, ranTasks } from './figures.ts';
import { reportPage } from './report-page.ts';

/** Lines of the scheduler's log that are quoted. */
const LINES_MAX = 200;

/**
 * @param entries - of the task stream, since `start`
 * @param request - `start` in seconds since 1970, and `code`, which called
 */
export async function performanceReport(
  context: DaskContext,
  entries: readonly Fields[],
  request: Fields,
): Promise<string> {
  const { start } = request;
  const stopS = context.nowS();
  const [compute, server, lines, packages, script, style] = await Promise.all([
    profile({ start }, context),
    profile({ start, server: true }, context),
    logs({ start, n: LINES_MAX }, context),
    context.graphs.packages().catch(() => context.graphs.versions),
    asset('performance-report.js'),
    asset('app.css'),
  ]);
  const { cluster } = context;
  const { code } = request;
  return reportPage({
    figures: figuresOf(ranTasks(context, entries)),
    startS: numberIn(request, 'start') ?? stopS,
    stopS,
    address: context.address,
    workers: Array.from(cluster.workers.values(), (worker) => {
      const { address, name, threadCount: threads, memoryLimitBytes } = worker;
      return { address, name, threads, memoryLimitBytes, memoryBytes: worker.memory.process };
    }),
    versions: { ...packages, yardmaster: VERSION },
    code: typeof code === 'string' ? code : '',
    profiles: { compute, server },
    logLines: lines.map((line) => (line as readonly unknown[]).map(String).join(' ')),
    script: script ?? '',
    style: style ?? '',
  });
}
