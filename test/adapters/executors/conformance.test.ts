import { describe, it } from 'vitest';
import { inline } from '../../../adapters/executors/inline.ts';
import { threads } from '../../../adapters/executors/threads/index.ts';
import { executorConformance } from '../../../adapters/testing/index.ts';

const noOptions = {} as never;
executorConformance('inline', () => ({ create: (context) => inline.create(context, noOptions) }), {
  describe,
  it,
});
executorConformance(
  'threads',
  () => ({ create: (context) => threads.create(context, noOptions), endsTasks: true }),
  { describe, it },
);
