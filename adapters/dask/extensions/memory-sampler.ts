import { randomUUID } from 'node:crypto';

import type { Timer } from '../../../core/api/index.ts';
import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { MEASURES } from '../measures.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { numberIn, textIn } from '../codec/values.ts';

interface Sampling {
  readonly timer: Timer;
  /** Seconds since 1970, and bytes. */
  readonly samples: (readonly [number, number])[];
}

/** `distributed.diagnostics.MemorySampler`: how much memory the workers use together, over time. */
export const makeMemorySampler: MakeExtension = (context): DaskExtension => {
  const running = new Map<string, Sampling>();

  function start(request: Fields): string {
    const measure = measureIn(request);
    const client = textIn(request, 'client');
    const intervalMs = 1000 * (numberIn(request, 'interval') ?? 0.5);
    const key = randomUUID();
    const samples: (readonly [number, number])[] = [[context.nowS(), sum(context, measure)]];
    const timer = context.plugin.every(intervalMs, () => {
      if (context.clients.has(client)) samples.push([context.nowS(), sum(context, measure)]);
      else stop(key);
    });
    running.set(key, { timer, samples });
    return key;
  }

  function stop(key: string): Sampling['samples'] {
    const sampling = running.get(key);
    if (sampling === undefined) throw new PythonException('KeyError', key);
    running.delete(key);
    sampling.timer.cancel();
    return sampling.samples;
  }

  return {
    rpc: {
      memory_sampler_start: (request) => start(request),
      memory_sampler_stop: (request) => stop(textIn(request, 'key')),
    },
    close: () => {
      for (const { timer } of running.values()) timer.cancel();
    },
  };
};

function measureIn(request: Fields): keyof typeof MEASURES {
  const measure = textIn(request, 'measure');
  if (Object.hasOwn(MEASURES, measure)) return measure as keyof typeof MEASURES;
  throw new PythonException(
    'ValueError',
    `${measure} is no measure of memory; there are ${Object.keys(MEASURES).join(', ')}`,
  );
}

function sum({ cluster }: DaskContext, measure: keyof typeof MEASURES): number {
  let nbytes = 0;
  for (const { memory } of cluster.workers.values()) nbytes += memory[MEASURES[measure]];
  return nbytes;
}
