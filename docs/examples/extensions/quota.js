import { definePlugin } from 'yardmaster/plugin';

/** No client wants more results at once than it may. */
export default definePlugin({
  name: 'quota',
  apiVersion: 1,
  optionsSchema: { type: 'object', properties: { results: { type: 'integer', default: 1000 } } },
  setup: ({ cluster }, { results }) => ({
    admit: ({ client, keys }) =>
      cluster.clients.get(client).wantsWhat.size + keys.length <= results || {
        refuse: `more than ${results} results`,
      },
  }),
});
