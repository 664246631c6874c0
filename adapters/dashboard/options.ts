import type { OptionsOf } from '../../core/api/index.ts';

/** The number of ports that are tried, counted from the wanted one. */
export const PORTS_TRIED = 20;

export const DASHBOARD_OPTIONS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    /** Elsewhere only harmless figures are served without a token or certificates. */
    host: { type: 'string', minLength: 1, default: '127.0.0.1' },
    /** 0: any; one that is taken: the next free one of {@link PORTS_TRIED}. */
    port: { type: 'integer', minimum: 0, maximum: 65_535, default: 8787 },
    /** Each request has to carry it: `Authorization: Bearer …`, or once `?token=…` in a browser. */
    token: { type: 'string', minLength: 16 },
    /** Further names under which browsers may reach it, such as that of a proxy. */
    hosts: { type: 'array', items: { type: 'string', minLength: 1 }, default: [] },
    /** Tasks that the task stream remembers. */
    history: { type: 'integer', minimum: 1_000, maximum: 5_000_000, default: 100_000 },
    /** Remember tasks from the start, and not only while a viewer is there. */
    recordsAlways: { type: 'boolean', default: false },
  },
} as const;

export type DashboardOptions = OptionsOf<typeof DASHBOARD_OPTIONS_SCHEMA>;

const { host, port, hosts, history, recordsAlways } = DASHBOARD_OPTIONS_SCHEMA.properties;
export const DASHBOARD_DEFAULTS: DashboardOptions = {
  host: host.default,
  port: port.default,
  hosts: hosts.default,
  history: history.default,
  recordsAlways: recordsAlways.default,
};
