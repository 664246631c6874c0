import { SCHEDULER_SCHEMA } from './scheduler-schema.ts';
import { SCHEDULING_SCHEMA } from './scheduling-schema.ts';
import { WORKER_SCHEMA } from './worker-schema.ts';

/**
 * The JSON schema of a whole configuration file. Editors complete with it
 * (`schema/config.schema.json` is this object), the loader checks with it, and `docs/config.md` is
 * compared with it.
 *
 * Three keywords are our own. `unit`: the value may be written with a unit and arrives in this one.
 * `infinite`: `inf` is allowed, and null means it. `extension`: in code the value may also be the
 * definition, class or instance itself.
 */
export const CONFIG_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Yardmaster configuration',
  type: 'object',
  additionalProperties: false,
  properties: {
    $schema: { title: 'Schema of this file', type: 'string' },
    scheduler: SCHEDULER_SCHEMA,
    scheduling: SCHEDULING_SCHEMA,
    worker: WORKER_SCHEMA,
  },
};
