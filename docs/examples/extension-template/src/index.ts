import { definePlugin } from 'yardmaster/plugin';

/** Refuses graphs with a requested key that does not match the pattern. */
export default definePlugin({
  name: 'name-rule',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['pattern'],
    properties: {
      pattern: { type: 'string', minLength: 1, description: 'A regular expression.' },
    },
  },
  setup(_context, { pattern }) {
    const expression = new RegExp(pattern);
    return {
      admit({ keys }) {
        const wrong = keys.find((key) => !expression.test(key));
        return wrong === undefined || { refuse: `the key ${wrong} does not match ${pattern}` };
      },
    };
  },
});
