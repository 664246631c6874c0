export { MemoryStore } from './memory-store.ts';
export { defaultSpillFolder, removeAbandoned, SpillFolder } from './spill-folder.ts';
