import type { NamedRule } from '../../core/kernel/ports.ts';

const numberOf = (text: string): number => text.charCodeAt(text.length - 1);

/** Rules of several extensions, for random worlds: every task finds a worker that none refuses, and a time at which it may start. */
export const RULES: readonly NamedRule[] = [
  {
    name: 'other-parity',
    weight: 1,
    policy: {
      concerns: ({ key, restrictions }) => restrictions === undefined && numberOf(key) % 4 === 0,
      filter: (_task, { name }) => numberOf(name) % 2 === 0 || { refuse: 'its number is odd' },
    },
  },
  {
    name: 'not-the-last',
    weight: 1,
    policy: {
      concerns: ({ key, restrictions }) => restrictions === undefined && numberOf(key) % 3 === 0,
      filter: (_task, { name }) => name !== 'w3',
    },
  },
  {
    name: 'one-at-a-time',
    weight: 1,
    policy: {
      concerns: ({ key }) => numberOf(key) % 4 === 1,
      holds: (task) => task.prefix.states.processing > 0,
    },
  },
  {
    name: 'stays',
    weight: 1,
    policy: {
      concerns: ({ key }) => numberOf(key) % 5 === 0,
      mayMove: (_task, victim, thief) => victim.host < thief.host,
    },
  },
  {
    name: 'few-bytes',
    weight: 3,
    policy: {
      concerns: ({ key }) => numberOf(key) % 2 === 1,
      score: (_task, { nbytes }) => nbytes,
    },
  },
];
