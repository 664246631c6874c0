import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** How long each test file takes, learned from the runs before. */
export class Durations {
  #byName;
  #path;

  constructor(root) {
    this.root = root;
    this.#path = join(root, 'node_modules/.cache/yardmaster-vitest/durations.json');
    this.#byName = readJson(this.#path);
  }

  of(path) {
    return this.#byName[relative(this.root, path)];
  }

  /** One slow run does not count for all. */
  learn(path, ms) {
    const name = relative(this.root, path);
    this.#byName[name] = Math.round((ms + (this.#byName[name] ?? ms)) / 2);
  }

  save() {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify(this.#byName, undefined, 2));
  }
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return {}; // the first run
  }
}
