import { YardmasterError } from '../../core/api/index.ts';
import { EVENT_BYTES_MAX } from '../../core/shared/event-limit.ts';
import { approximateBytes } from '../../core/util/approximate-bytes.ts';
import { entryBytes } from './budget.ts';
import type { TopicScope } from './topics.ts';

/** Different topics under which one client may log. */
const TOPICS_MAX = 1000;

/** Under which topics each client has logged events, and how large they may be. */
export class PublishedTopics {
  private readonly byClient = new Map<string, Set<string>>();

  constructor(private readonly scope: Pick<TopicScope, 'budget' | 'departures'>) {}

  /** @throws YardmasterError `ERR_QUOTA`; `ERR_COORDINATION` when the space for names is used up */
  check(client: string, topics: readonly string[], message: unknown): void {
    if (approximateBytes(message, EVENT_BYTES_MAX) > EVENT_BYTES_MAX) {
      throw new YardmasterError(
        'ERR_QUOTA',
        `an event of the client ${client} is larger than ${EVENT_BYTES_MAX} bytes; log where the data is`,
        { client, limitBytes: EVENT_BYTES_MAX },
      );
    }
    const known = this.byClient.get(client) ?? this.added(client);
    for (const topic of topics) if (!known.has(topic)) this.add(client, known, topic);
  }

  private added(client: string): Set<string> {
    const topics = new Set<string>();
    this.byClient.set(client, topics);
    this.scope.departures.add(client, () => {
      this.byClient.delete(client);
      for (const topic of topics) this.scope.budget.free(entryBytes(topic));
    });
    return topics;
  }

  private add(client: string, known: Set<string>, topic: string): void {
    if (known.size >= TOPICS_MAX) {
      throw new YardmasterError(
        'ERR_QUOTA',
        `the client ${client} has logged events under ${TOPICS_MAX} topics; use one of them again`,
        { client, topics: TOPICS_MAX },
      );
    }
    this.scope.budget.charge(entryBytes(topic), `the topic "${topic.slice(0, 100)}"`);
    known.add(topic);
  }
}
