/**
 * `yardmaster/testing`: what authors of transports, plugins and policies need for their own tests.
 * Importing it needs no test runner. Guides: `docs/plugins.md`, `docs/transports.md`.
 *
 * @module yardmaster/testing
 */
export * from '../../testing/index.ts';
