// Each task runs in a `node:vm` context of its own: it sees fresh globals, and code that never returns is stopped.
// This keeps tasks from disturbing each other. It is no security boundary: code in a context can get out of it.
import { createContext, Script } from 'node:vm';
import { defineExecutor } from 'yardmaster/executor';
import { untilAborted } from './until-aborted.js';

/** Made of the text of the function, which therefore can use nothing around it but what is listed here. */
const globals = () => ({ console, setTimeout, clearTimeout, URL, TextEncoder, TextDecoder });

export default defineExecutor({
  name: 'vm',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      timeout: { type: ['number', 'string'], unit: 'ms', default: '1s' },
    },
  },
  create: (context, { timeout }) => {
    const closed = new AbortController();
    const sandboxed = async ({ fn, args }) => {
      const sandbox = createContext({ ...globals(), args });
      const returned = new Script(`(${fn})(...args)`).runInContext(sandbox, { timeout });
      return structuredClone(await returned); // Its objects are of the context.
    };
    return {
      threadCount: context.threadCount,
      run: (task, signal, slot) =>
        context.run(task, {
          signal,
          slot,
          call: (call) => untilAborted(sandboxed(call), AbortSignal.any([signal, closed.signal])),
        }),
      close: async () => closed.abort(),
    };
  },
});
