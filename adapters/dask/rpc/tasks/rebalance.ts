/** `rebalance`: evens out the memory of workers. */
import type { DaskContext, Fields } from '../../context.ts';
import { listIn, numberIn, asList } from '../../codec/values.ts';
import { measureNamed } from '../../measures.ts';
import { fieldsOf, pauseMs, workersIn } from '../workers/calls.ts';

/** Between two looks whether a worker has dropped what it was asked to. */
const LOOK_MS = 20;
const LOOKS_MAX = 500;

/** Answers when the results have moved, and the workers that gave them have dropped them. */
export async function rebalance(request: Fields, context: DaskContext): Promise<unknown> {
  const { keys: table } = context;
  const keys = listIn(request, 'keys');
  const workers = workersIn(context, request['workers']);
  const given = {
    ...(keys === undefined ? {} : { keys: table.textsOf(keys) }),
    ...(workers === undefined ? {} : { workers: workers.map(({ address }) => address) }),
    ...rebalanceRules(request),
  };
  const answer = fieldsOf(await context.plugin.run('amm.rebalance', given), 'amm.rebalance');
  const moved = asList(answer['moved']) as readonly string[];
  const senders = asList(answer['senders']) as readonly string[];
  await Promise.all(senders.map((address) => dropped(context, address, moved)));
  const missing = asList(answer['missing']) as readonly string[];
  if (missing.length === 0) return { status: 'OK' };
  return { status: 'partial-fail', keys: table.wiresOf(missing) };
}

/** Dask has these in its configuration alone; here a call may state them by keyword, too. */
function rebalanceRules(request: Fields): Fields {
  const { measure } = request;
  return {
    ...(measure === undefined || measure === null ? {} : { measure: measureNamed(measure) }),
    senderMin: numberIn(request, 'sender_min'),
    recipientMax: numberIn(request, 'recipient_max'),
    gap: numberIn(request, 'sender_recipient_gap'),
  };
}

/**
 * Waits until a worker of Dask has dropped results: it does not confirm that, and callers look at its memory. Gives up
 * when it takes too long, or the worker does not answer.
 */
async function dropped(
  context: DaskContext,
  address: string,
  moved: readonly string[],
): Promise<void> {
  for (let look = 0; look < LOOKS_MAX && context.workers.has(address); look++) {
    const held = await context.pool.call(address, 'keys').catch(() => []);
    const texts = new Set(context.keys.textsOf(asList(held) ?? []));
    const worker = context.cluster.workers.get(address);
    const isDropped = (key: string): boolean => {
      const task = context.cluster.tasks.get(key);
      return !texts.has(key) || task === undefined || worker?.hasWhat.has(task) === true;
    };
    if (moved.every(isDropped)) return;
    await pauseMs(context, LOOK_MS);
  }
}
