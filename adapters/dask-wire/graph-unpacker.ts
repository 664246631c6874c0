import type { DaskContext, Fields } from './context.ts';
import type { GraphUnpacker } from './front.ts';
import { isMaterialized, unpackMaterialized } from './graph/materialized.ts';
import type { GraphContext } from './graph/unpacked.ts';
import { PythonException } from './py-errors.ts';

/** Graphs that list their tasks are read here. */
export function makeUnpacker(
  context: DaskContext,
  _options: { readonly python: string },
): GraphUnpacker {
  const graphContext: GraphContext = {
    keyOf: (wire) => context.keys.textOf(wire),
    isWorkerName: (name) => {
      for (const worker of context.cluster.workers.values()) if (worker.name === name) return true;
      return false;
    },
  };
  return {
    unpack(message: Fields) {
      if (isMaterialized(message)) return unpackMaterialized(message, graphContext);
      throw new PythonException('NotImplementedError', 'this graph needs Python to be read');
    },
  };
}
