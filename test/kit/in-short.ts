import type { TransitionRecord } from '../../core/api/insight.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ReplicaLocations, ToWorkerMessage } from '../../core/messages/to-worker.ts';
import { unreachable } from '../../core/util/values.ts';

/** Workers of tests listen at `tcp://NAME:1`; in short they are called by their name. */
export function nameOf(address: string): string {
  return address.replace(/^tcp:\/\//, '').replace(/:1$/, '');
}

export function addressOf(name: string): string {
  return name.includes(':') ? name : `tcp://${name}:1`;
}

/** `compute-task c (a on w1, b on w1 w2)`, `free-keys a`, `close scheduler-remove-worker`. */
export function workerMessageInShort(message: ToWorkerMessage): string {
  switch (message.op) {
    case 'compute-task': {
      const inputs = locationsInShort(message.dependencies);
      return `compute-task ${message.key}${inputs === '' ? '' : ` (${inputs})`}`;
    }
    case 'free-keys':
    case 'steal-request':
    case 'remove-replicas':
      return `${message.op} ${message.keys.join(' ')}`;
    case 'set-priority': {
      const moved = message.keys.map(
        (key, index) => `${key} ${message.priorities[index]!.join('/')}`,
      );
      return `${message.op} ${moved.join(', ')}`;
    }
    case 'extend-time-limits': {
      const extended = message.keys.map((key, index) => `${key} ${message.timeLimitsMs[index]}`);
      return `${message.op} ${extended.join(', ')}`;
    }
    case 'resume-run':
      return `${message.op} ${message.key}`;
    case 'acquire-replicas':
    case 'refresh-who-has':
      return `${message.op} ${locationsInShort(message.replicas)}`;
    case 'remove-worker':
      return `${message.op} ${nameOf(message.worker)}`;
    case 'worker-status-change':
      return `${message.op} ${message.status}`;
    case 'close':
      return `${message.op} ${message.reason}`;
    default:
      return unreachable(message);
  }
}

/** `key-in-memory c on w1`, `task-erred d because of b`, `cancelled-keys x y`. */
export function clientMessageInShort(message: ToClientMessage): string {
  switch (message.op) {
    case 'key-in-memory':
      return `${message.op} ${message.key} on ${message.workers.map(nameOf).join(' ')}`;
    case 'task-erred':
      return `${message.op} ${message.key} because of ${message.blame}`;
    case 'cancelled-keys':
    case 'data-refused':
      return `${message.op} ${message.keys.join(' ')}`;
    case 'lost-data':
    case 'task-retried':
      return `${message.op} ${message.key}`;
    case 'restart':
      return message.op;
    default:
      return unreachable(message);
  }
}

/** `b processing -> memory {c: processing, a: released}`. */
export function recordInShort(record: TransitionRecord): string {
  const told = record.recommendations.map(([key, target]) => `${key}: ${target}`).join(', ');
  return `${record.key} ${record.start} -> ${record.finish} {${told}}`;
}

function locationsInShort({ keys, whoHas }: ReplicaLocations): string {
  return keys.map((key, index) => `${key} on ${whoHas[index]!.map(nameOf).join(' ')}`).join(', ');
}
