import { sizeText } from '../../../core/util/units.ts';

/** 1536 → 1.5 KiB; below 0: unknown. */
export function bytes(amount: number): string {
  return amount < 0 ? '–' : sizeText(amount);
}

/** Bytes per second. */
export function perSecond(amount: number): string {
  return `${bytes(amount)}/s`;
}

/** 0.0042 → 4.2 ms */
export function seconds(amount: number): string {
  if (amount < 0) return '–';
  if (amount === 0) return '0 s';
  if (amount < 0.001) return `${Math.round(amount * 1e6)} µs`;
  if (amount < 1) return `${Number((amount * 1000).toPrecision(2))} ms`;
  if (amount < 120) return `${Number(amount.toPrecision(3))} s`;
  if (amount < 7200) return `${Math.round(amount / 60)} min`;
  return `${(amount / 3600).toFixed(1)} h`;
}

/** 12.3 → 12 % */
export function percent(amount: number): string {
  return `${Math.round(amount)} %`;
}

/** 12345 → 12,345 */
export function count(amount: number): string {
  return Math.round(amount).toLocaleString('en');
}

/** Time of day of the scheduler's clock. */
export function clock(atS: number): string {
  return new Date(atS * 1000).toLocaleTimeString('en-GB');
}

/** Time of day with milliseconds. */
export function preciseClock(atMs: number): string {
  return `${clock(atMs / 1000)}.${String(Math.floor(atMs % 1000)).padStart(3, '0')}`;
}
