/** Options of the plugin `dashboard`. */
export interface DashboardOptions {
  /** Default 127.0.0.1. Elsewhere only harmless figures are served without a token or certificates. */
  readonly host: string;
  /** The port; when it is taken, the next free one of {@link PORTS_TRIED}; 0 for any. */
  readonly port: number;
  /** Each request has to carry it: `Authorization: Bearer …`, or once `?token=…` in a browser. */
  readonly token?: string;
  /** Further names under which browsers may reach it, such as that of a proxy. */
  readonly hosts: readonly string[];
  /** Tasks that the task stream remembers. */
  readonly history: number;
  /** Remember tasks from the start, and not only while a viewer is there. */
  readonly recordsAlways: boolean;
}

/** The number of ports that are tried, counted from the wanted one. */
export const PORTS_TRIED = 20;

export const DASHBOARD_DEFAULTS: DashboardOptions = {
  host: '127.0.0.1',
  port: 8787,
  hosts: [],
  history: 100_000,
  recordsAlways: false,
};

/** Their schema. */
export const DASHBOARD_OPTIONS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    host: { type: 'string', minLength: 1, default: DASHBOARD_DEFAULTS.host },
    port: { type: 'integer', minimum: 0, maximum: 65_535, default: DASHBOARD_DEFAULTS.port },
    token: { type: 'string', minLength: 16 },
    hosts: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: DASHBOARD_DEFAULTS.hosts,
    },
    history: {
      type: 'integer',
      minimum: 1_000,
      maximum: 5_000_000,
      default: DASHBOARD_DEFAULTS.history,
    },
    recordsAlways: { type: 'boolean', default: DASHBOARD_DEFAULTS.recordsAlways },
  },
} as const;
