/** A time in the schema of the configuration; it arrives in milliseconds. */
export const duration = (title: string, text: string, more: object = {}): object => ({
  title,
  description: `${text} Such as 2s, 100 ms, 5 minutes; a number is seconds.`,
  type: ['number', 'string'],
  unit: 'ms',
  minimum: 0,
  ...more,
});

/** A size; it arrives in bytes. */
export const bytes = (title: string, text: string, more: object = {}): object => ({
  title,
  description: `${text} Such as 50MB (10^6), 64 MiB (2^20); a number is bytes.`,
  type: ['number', 'string'],
  unit: 'bytes',
  minimum: 0,
  ...more,
});

/** A part of the memory, or a size; it arrives as a share when it is at most 1, else in bytes. */
export const memory = (title: string, text: string, more: object = {}): object => ({
  title,
  description: `${text} Such as 80%, 4 GiB; a number up to 1 is a share, a larger one is bytes.`,
  type: ['number', 'string'],
  unit: 'share',
  ...more,
});

/** Yes or no. */
export const flag = (title: string, description: string, byDefault: boolean): object => ({
  title,
  description,
  type: 'boolean',
  default: byDefault,
});

/** A whole number. */
export const whole = (title: string, description: string, more: object = {}): object => ({
  title,
  description,
  type: 'integer',
  minimum: 0,
  ...more,
});

/** A section that may be left out. */
export const section = (title: string, description: string, properties: object): object => ({
  title,
  description,
  type: 'object',
  additionalProperties: false,
  default: {},
  properties,
});
