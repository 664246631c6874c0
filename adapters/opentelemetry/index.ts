import {
  definePlugin,
  PLUGIN_API_VERSION,
  VERSION,
  YardmasterError,
} from '../../core/api/index.ts';
import { type Api, TaskSpans } from './task-spans.ts';

/**
 * Spans of OpenTelemetry for graphs and tasks: waiting, queue, transfers, run. They go to the provider that the program has
 * registered; without one they cost next to nothing. Needs the package `@opentelemetry/api`.
 */
export default definePlugin({
  name: 'opentelemetry',
  apiVersion: PLUGIN_API_VERSION,
  optionsSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup(context) {
    let spans: TaskSpans | undefined;
    return {
      start: async () => {
        spans = new TaskSpans(await loadApi(), VERSION, context.clock);
        context.observe(spans.hooks);
      },
      close: () => spans?.close(),
    };
  },
});

async function loadApi(): Promise<Api> {
  try {
    return await import('@opentelemetry/api');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      'the plugin "opentelemetry" needs the package @opentelemetry/api, which cannot be loaded; install it beside yardmaster',
      { plugin: 'opentelemetry' },
      { cause },
    );
  }
}
