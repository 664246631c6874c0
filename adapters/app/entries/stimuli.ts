/**
 * `yardmaster/stimuli`: the events that the kernel handles, for plugins that enqueue them
 * (`context.enqueue`). Guide: `docs/plugins.md`.
 *
 * @module yardmaster/stimuli
 */
export type { HeldResults } from '../../../core/messages/protocol.ts';
export type * from '../../../core/messages/stimulus.ts';
