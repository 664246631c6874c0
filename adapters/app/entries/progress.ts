/**
 * `yardmaster/progress`: how far futures are, as numbers and as bars in a terminal. Guide: `docs/client.md`.
 *
 * @module yardmaster/progress
 */
export {
  progress,
  type Progress,
  type ProgressCounts,
  type ProgressOptions,
} from '../../client/progress.ts';
export { showProgress, type ShowProgressOptions } from '../../client/progress.ts';
