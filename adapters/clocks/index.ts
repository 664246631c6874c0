export { SystemClock } from './system-clock.ts';
export { VirtualClock } from './virtual-clock.ts';
