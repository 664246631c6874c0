import { BRIDGE, definePlugin, YardmasterError } from '../core/api/index.ts';
import { COORDINATION_OPTIONS } from './coordination/settings.ts';
import { optionsSchema } from '../core/shared/settings.ts';
import { addCommands } from './coordination/commands.ts';
import { DataSets, Queues, Variables } from './coordination/variables.ts';
import { Flags, Leases, Semaphores } from './coordination/leases.ts';
import { failAll, makeScope } from './coordination/scope.ts';
import { PublishedTopics, Topics } from './coordination/topics.ts';

/**
 * Coordination of clients by name: variables, queues, locks, semaphores, events, published data sets,
 * and topics to subscribe to. Waiting calls are served first come, first served. What a client
 * holds is released when the client leaves, and a lease also when it is not renewed in time.
 */
export default definePlugin({
  name: 'coordination',
  apiVersion: 1,
  optionsSchema: optionsSchema(COORDINATION_OPTIONS),
  setup(context, options) {
    const scope = makeScope(context, options);
    const leases = new Leases(scope);
    const topics = new Topics(scope, context.get(BRIDGE).observe);
    addCommands(context, {
      scope,
      leases,
      topics,
      published: new PublishedTopics(scope),
      variables: new Variables(scope),
      queues: new Queues(scope),
      locks: new Semaphores(scope, leases, 'lock'),
      semaphores: new Semaphores(scope, leases, 'semaphore'),
      flags: new Flags(scope),
      dataSets: new DataSets(scope),
      enqueue: (stimulus) => context.enqueue(stimulus),
    });
    return {
      clientRemoved: ({ key }) => scope.departures.leave(key),
      close: () => {
        failAll(
          scope,
          new YardmasterError(
            'ERR_CLOSED',
            'the scheduler closes, or its coordination was removed',
          ),
        );
        leases.close();
        topics.close();
        scope.keeper.releaseAll();
      },
    };
  },
});
