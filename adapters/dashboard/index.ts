import { NO_PARAMETERS } from '../../core/api/definition.ts';
import { definePlugin, type PluginContext } from '../../core/api/index.ts';
import type { Dashboard, DashboardParts } from './dashboard.ts';
import { DASHBOARD_DEFAULTS, DASHBOARD_OPTIONS_SCHEMA } from './options.ts';

export type { DashboardOptions } from './options.ts';

/**
 * The dashboard, metrics and figures of the scheduler over HTTP. The command `dashboard.url` returns what a browser
 * opens. Its libraries are loaded when it starts.
 */
export default definePlugin({
  name: 'dashboard',
  apiVersion: 1,
  optionsSchema: DASHBOARD_OPTIONS_SCHEMA,
  setup(context, options) {
    let dashboard: Dashboard | undefined;
    // The address may contain a key.
    context.command(
      'url',
      { access: 'admin', parameters: NO_PARAMETERS },
      () => dashboard?.url ?? null,
    );
    return {
      start: async () => {
        dashboard = await openDashboard(context, options);
      },
      close: () => dashboard?.close(),
    };
  },
});

/**
 * Opens a dashboard from within another plugin. Without options it is as the plugin `dashboard` is without any.
 * @throws Error when the host cannot be listened at
 */
export async function openDashboard(
  context: PluginContext,
  parts: Partial<DashboardParts> = {},
): Promise<Dashboard> {
  const { Dashboard } = await import('./dashboard.ts');
  return Dashboard.open(context, { ...DASHBOARD_DEFAULTS, ...parts });
}
