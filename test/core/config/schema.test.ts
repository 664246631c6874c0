import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configuration } from '../../../adapters/app/config.ts';

const root = new URL('../../../', import.meta.url);

interface Node {
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly additionalProperties?: Node | boolean;
}

function* keys(node: Node, path: string): Generator<readonly [path: string, node: Node]> {
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    const at = path === '' ? key : `${path}.${key}`;
    yield [at, child];
    yield* keys(child, at);
  }
  if (node.items !== undefined) yield* keys(node.items, `${path}[]`);
}

const all = [...keys(configuration.schema, '')];

describe('the schema', () => {
  it.each(all.map(([path, node]) => ({ path, node })))('$path has a title', ({ node }) =>
    expect(node.title).toMatch(/^[A-Z]/),
  );

  it('every key is explained in docs/config.md', () => {
    const text = readFileSync(new URL('docs/config.md', root), 'utf8');
    const paths = all.map(([path]) => path).filter((path) => path !== '$schema');
    expect(paths.filter((path) => !text.includes(`\`${path}\``))).toEqual([]);
  });
});
