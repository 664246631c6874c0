import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { definePlugin } from 'yardmaster/plugin';

/** Writes who submitted what, and what failed, to a file: one line of JSON for each event. */
export default definePlugin({
  name: 'audit',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['file'],
    properties: { file: { type: 'string', minLength: 1 } },
  },
  setup({ clock, report }, { file }) {
    const stream = createWriteStream(file, { flags: 'a' });
    stream.on('error', report);
    const write = (what, about) =>
      stream.write(`${JSON.stringify({ atMs: clock.nowMs(), what, ...about })}\n`);
    return {
      clientAdded: ({ key }) => write('joined', { client: key }),
      clientRemoved: ({ key }) => write('left', { client: key }),
      graphUpdated: ({ client, keys, tasks }) =>
        write('submitted', { client, keys, tasks: tasks.length }),
      eventLogged: (topic, message) => {
        if (topic === 'scheduler' && message.action === 'graph-refused') write('refused', message);
      },
      taskErred: ({ key, failure }) => write('failed', { key, why: failure?.exceptionText }),
      async close() {
        stream.end();
        await finished(stream);
      },
    };
  },
});
