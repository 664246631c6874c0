import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { startCluster } from './bench.ts';
import { fail, spin } from './fixtures/tasks.mjs';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly expr: string }[];
}

interface Board {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly definition?: string }[];
  };
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly annotations: object;
    }[];
  }[];
}

const read = (name: string): string =>
  readFileSync(new URL(`../../../docs/grafana/${name}`, import.meta.url), 'utf8');

const board = JSON.parse(read('yardmaster.json')) as Board;
const rules = (parse(read('alerts.yaml')) as Rules).groups.flatMap((group) => group.rules);

/** Labels that Prometheus adds to everything. */
const OF_PROMETHEUS = new Set(['job', 'instance']);

const METRIC = /\b(?:dask|yardmaster|process)_[a-z_]+\b/g;

const expressions: readonly (readonly [where: string, expr: string])[] = [
  ...board.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr] as const),
  ),
  ...board.templating.list.flatMap(({ name, definition }) =>
    definition === undefined ? [] : [[name, definition] as const],
  ),
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
];

describe('the board for Grafana and the alerts', () => {
  let cluster: LocalCluster;
  let text: string;
  beforeAll(async () => {
    let at: string;
    ({ cluster, at } = await startCluster());
    const client = await cluster.client();
    const done = client.with({ key: 'load-1' }).submit(spin, 1);
    const failed = client.with({ key: 'parse-1' }).submit(fail, 'no');
    await Promise.all([done.settled(), failed.settled()]);
    await fetch(`${at}/metrics`);
    text = await (await fetch(`${at}/metrics`)).text();
  });
  afterAll(() => cluster.close());

  it.each(expressions)('ask for metrics and labels that a scheduler has: %s', (_where, expr) => {
    const names = expr.match(METRIC)?.filter((name) => !/^(?:task_prefix_name)$/.test(name)) ?? [];
    expect(names).not.toEqual([]);
    for (const name of names) expect(text).toContain(`# TYPE ${name} `);
    const samples = names.map(
      (name) => text.match(new RegExp(`^${name}(?:\\{.*|\\s.*)$`, 'gm')) ?? [],
    );
    if (samples.some((found) => found.length === 0)) return; // Errors have no samples without an error.
    const known = samples.flat().join('\n');
    const labels = [...expr.matchAll(/[{,]\s*(\w+)=|by \(([\w, ]+)\)/g)].flatMap(([, one, many]) =>
      one === undefined ? (many ?? '').split(', ') : [one],
    );
    for (const label of labels) {
      if (!OF_PROMETHEUS.has(label)) expect(known).toContain(`${label}="`);
    }
  });

  it.each(rules)(
    'ask for states that there are, and say what to do: $alert',
    ({ expr, annotations }) => {
      expect(Object.keys(annotations)).toEqual(['summary', 'description']);
      for (const [, states = ''] of expr.matchAll(/state=~?"([^"]*)"/g)) {
        for (const state of states.split('|')) expect(text).toContain(`state="${state}"`);
      }
    },
  );

  it('use what the guide explains: every metric of a scheduler, and nothing that it does not have', () => {
    const guide = readFileSync(new URL('../../../docs/dashboard.md', import.meta.url), 'utf8');
    const explained = [...guide.matchAll(/`((?:dask|yardmaster|process)_[a-z_]+)`/g)];
    const known = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name!);
    expect(new Set(explained.map(([, name]) => name!))).toEqual(new Set(known));
  });

  it('show panels that do not overlap', () => {
    const cells = new Set<string>();
    for (const { gridPos, title } of board.panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells.has(`${x} ${y}`), title).toBe(false);
          cells.add(`${x} ${y}`);
        }
      }
    }
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  });
});
