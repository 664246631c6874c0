/** Reports about a piece of work: what was done when, what it cost, and what could be better. */
export { collecting } from './run-collector.ts';
export { RunCollector } from './run-collector.ts';
export type * from './history.ts';
export { packHistory, unpackHistory } from './history.ts';
export { type Report, reportOf } from './report.ts';
export { scheduleOf, type ScheduledRun, ThreadRows } from './report.ts';
