import { definePolicy } from '../../../core/api/index.ts';

export default definePolicy('stealing', {
  name: 'long-tasks',
  apiVersion: 1,
  create: () => ({
    levelOf: (task, level) => (task.prefix.durationEstimateS < 1 ? undefined : level),
  }),
});
