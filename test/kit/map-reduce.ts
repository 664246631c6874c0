import type { GraphTask } from '../../core/messages/stimulus.ts';
import { graphTasks } from './graph.ts';

/** A number of `read`s, a `map` of each, and a tree of `reduce`s with a fixed number of inputs. */
export function mapReduce(roots: number, fanIn: number): GraphTask[] {
  const graph: Record<string, readonly string[]> = {};
  let level: string[] = [];
  for (let index = 0; index < roots; index++) {
    graph[`read-${index}`] = [];
    graph[`map-${index}`] = [`read-${index}`];
    level.push(`map-${index}`);
  }
  for (let depth = 0; level.length > 1; depth++) {
    const next: string[] = [];
    for (let start = 0; start < level.length; start += fanIn) {
      const key = `reduce${depth}-${start / fanIn}`;
      graph[key] = level.slice(start, start + fanIn);
      next.push(key);
    }
    level = next;
  }
  return graphTasks(graph);
}

/** Milliseconds from 50 to 149, the same for the same key. */
export function unevenMs(key: string): number {
  let hash = 7;
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return 50 + ((Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0) % 100);
}
