/**
 * `yardmaster/mars`: for programs that were written for Mars' scheduling service. Guide:
 * `docs/scheduling-api.md`.
 */
export * from '../../mars/index.ts';
