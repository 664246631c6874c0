/** Colours of prefixes, most of them Paul Tol's; states have those of Okabe and Ito. None is near another, or to an action. */
export const PALETTE = [
  '#6a6fd8',
  '#ccbb44',
  '#228833',
  '#aa3377',
  '#66ccee',
  '#ee6677',
  '#44aa99',
  '#999933',
];

/** The colour of a prefix, by its number. Later ones are shades of the first. */
export function prefixColour(number: number): string {
  const base = PALETTE[number % PALETTE.length] ?? '#7f7f7f';
  const round = Math.floor(number / PALETTE.length);
  if (round === 0) return base;
  const toward = round % 2 === 1 ? 0 : 255;
  const share = Math.min(0.6, 0.25 * Math.ceil(round / 2));
  return mix(base, toward, share);
}

/** States of tasks, in the order of their life, with colours and the plain word; a name always stands beside them. */
export const STATES = [
  ['memory', '#0072b2', 'memory: the result is held'],
  ['processing', '#009e73', 'processing: on a worker'],
  ['queued', '#e69f00', 'queued: at the scheduler'],
  ['waiting', '#8a94a0', 'waiting: for inputs'],
  ['no-worker', '#cc79a7', 'no-worker: none may run it'],
  ['erred', '#d55e00', 'erred: failed'],
  ['released', '#c3cad2', 'released: not held'],
] as const;

export function stateColour(state: string): string {
  return STATES.find(([name]) => name === state)?.[1] ?? '#8a94a0';
}

/** Kinds of memory of a worker; what is on disk is none of it. */
export const MEMORY = [
  ['managed', '#0072b2', 'results'],
  ['unmanagedOld', '#e69f00', 'unmanaged'],
  ['unmanagedRecent', '#56b4e9', 'unmanaged, recent'],
] as const;

/** Actions of a task other than computing. */
export const ACTION_COLOURS: Readonly<Record<string, string>> = {
  transfer: '#962dff',
  'disk-read': '#8c6d1f',
  'disk-write': '#8c6d1f',
  deserialize: '#7f7f7f',
  other: '#7f7f7f',
};

/** A colour of the present theme. */
export function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function mix(colour: string, toward: number, share: number): string {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const mixed = parts.map((part) => Math.round(part + (toward - part) * share));
  return `rgb(${mixed.join(' ')})`;
}

/** From light to dark, or back, whatever the system prefers. */
export function switchTheme(): void {
  const { classList } = document.documentElement;
  const isDark =
    classList.contains('dark') ||
    (!classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
  classList.toggle('dark', !isDark);
  classList.toggle('light', isDark);
}
