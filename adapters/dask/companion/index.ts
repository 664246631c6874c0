/** Python of Dask's users that belongs to the scheduler: functions and scheduler plugins. */
export { Companion, type CompanionHost, makeCompanion } from './companion.ts';
export { makeTallies, Tallies } from './tallies.ts';
