export const PAGES = [
  'status',
  'tasks',
  'graph',
  'profile',
  'system',
  'memory',
  'decisions',
  'workers',
  'log',
] as const;

export type PageName = (typeof PAGES)[number];

/** Pages of Dask's dashboard without an equal name here, and the page that shows the same. */
export const DASK_PAGES: Readonly<Record<string, PageName>> = {
  groups: 'graph',
  exceptions: 'status',
  events: 'log',
};

/** Single plots of Dask's dashboard, by the part of their path after `individual-`. Ours are shown without the header. */
export const SINGLE_PAGES: Readonly<Record<string, PageName>> = {
  progress: 'status',
  'task-stream': 'tasks',
  graph: 'graph',
  profile: 'profile',
  'workers-memory': 'memory',
  'workers-cpu-timeseries': 'system',
  workers: 'workers',
  decisions: 'decisions',
  log: 'log',
  groups: 'graph',
  'cluster-memory': 'status',
  'memory-by-key': 'memory',
  'workers-memory-timeseries': 'system',
  'workers-network-timeseries': 'system',
  'workers-disk-timeseries': 'system',
  'bandwidth-workers': 'system',
  'bandwidth-types': 'system',
  'scheduler-system': 'system',
  cpu: 'workers',
  nprocessing: 'workers',
  occupancy: 'workers',
  exceptions: 'status',
  'compute-time-per-key': 'tasks',
};

/** The number of {@link SINGLE_PAGES}, from the first on, that are listed for JupyterLab: one for each page. */
const LISTED = 9;

const SINGLE = 'individual-';

/**
 * The page that a path leads to. Only its last part counts: a proxy may put the dashboard below another path.
 * @returns undefined when there is no such page
 */
export function pageAt(path: string): PageName | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (name === '') return 'status';
  if (isSingle(path)) return ownValue(SINGLE_PAGES, name.slice(SINGLE.length));
  return PAGES.find((page) => page === name) ?? ownValue(DASK_PAGES, name);
}

/** True when the page at this path is to be shown without the header, as in a frame of JupyterLab. */
export function isSingle(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(SINGLE);
}

/** Every path at which there is a page. */
export function pagePaths(): readonly string[] {
  const names = [...PAGES, ...Object.keys(DASK_PAGES), ...Object.keys(SINGLE_PAGES).map(single)];
  return ['/', ...names.map((name) => `/${name}`)];
}

/** `/individual-plots.json`: paths by the names that JupyterLab's extension shows, after `Individual`. */
export function plotsForJupyter(): Readonly<Record<string, string>> {
  const names = Object.keys(SINGLE_PAGES).slice(0, LISTED);
  return Object.fromEntries(names.map((name) => [title(single(name)), `/${single(name)}`]));
}

function single(name: string): string {
  return SINGLE + name;
}

/** `workers-memory` → `Workers Memory` */
function title(name: string): string {
  return name
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}

function ownValue<T>(values: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}
