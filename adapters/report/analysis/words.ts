import { count } from '../../dashboard/page/format.ts';

/** 0.256 → 26 % */
export function percent(share: number): string {
  const value = 100 * share;
  return `${value > 0 && value < 1 ? '<1' : Math.round(value)} %`;
}

/** 3 → 3 workers */
export function countOf(amount: number, noun: string): string {
  return `${count(amount)} ${noun}${amount === 1 ? '' : 's'}`;
}

/** 3 → 3 tasks */
export function tasks(amount: number): string {
  return countOf(amount, 'task');
}
