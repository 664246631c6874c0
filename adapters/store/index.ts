export { MemoryStore } from './memory-store.ts';
