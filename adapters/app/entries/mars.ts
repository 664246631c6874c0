/**
 * `yardmaster/mars`: for programs that were written for Mars' scheduling service. Guide:
 * `docs/scheduling-api.md`.
 *
 * @module yardmaster/mars
 */
export * from '../../mars/index.ts';
