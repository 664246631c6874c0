/** Events by topic, and their subscribers. */
import type { DaskContext, DaskExtension, Fields } from '../../context.ts';
import { asList } from '../../codec/values.ts';

interface Logged {
  readonly atMs: number;
  readonly message: unknown;
}

/** Requests about events, and subscriptions of clients. */
export function makeEvents(context: DaskContext): DaskExtension {
  const { plugin, clients } = context;
  const subscribers = new Map<string, Set<string>>();
  const onEvent = (topic: string, message: unknown): void => {
    const ids = subscribers.get(topic);
    if (ids === undefined) return;
    const event = [context.nowS(), message];
    for (const id of ids) clients.get(id)?.send({ op: 'event', topic, event });
  };
  plugin.events.on('event', onEvent);
  return {
    rpc: {
      events: (request) => events(context, request['topic']),
      log_event: (request) => logEvent(context, request),
    },
    clientOps: {
      'subscribe-topic': ({ topic }, client) => {
        const name = String(topic);
        const ids = subscribers.get(name) ?? new Set();
        subscribers.set(name, ids.add(client.id));
      },
      'unsubscribe-topic': ({ topic }, client) => leave(subscribers, String(topic), client.id),
      'log-event': (message) => void logEvent(context, message),
    },
    clientGone: ({ id }) => {
      for (const topic of [...subscribers.keys()]) leave(subscribers, topic, id);
    },
    close: () => plugin.events.off('event', onEvent),
  };
}

function leave(subscribers: Map<string, Set<string>>, topic: string, client: string): void {
  const ids = subscribers.get(topic);
  if (ids?.delete(client) === true && ids.size === 0) subscribers.delete(topic);
}

function events({ plugin }: DaskContext, topic: unknown): unknown {
  const of = (name: string): unknown[] => {
    const logged = plugin.run('events', { topic: name }) as readonly Logged[];
    return logged.map(({ atMs, message }) => [atMs / 1000, message]);
  };
  if (typeof topic === 'string') return of(topic);
  const topics = plugin.run('events') as readonly (readonly [string, number])[];
  return new Map(topics.map(([name]) => [name, of(name)]));
}

function logEvent({ plugin }: DaskContext, request: Fields): null {
  const { topic, msg } = request;
  const topics = typeof topic === 'string' ? [topic] : (asList(topic) ?? []).map(String);
  plugin.enqueue({ op: 'log-event', topics, message: msg });
  return null;
}
