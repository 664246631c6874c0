import { VERSION } from '../api/version.ts';

/** Versions of Yardmaster and Node that this process runs. */
export function versionsHere(): { readonly yardmaster: string; readonly node: string } {
  return { yardmaster: VERSION, node: process.versions.node };
}
