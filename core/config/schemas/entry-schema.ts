/** The form of every place where an extension is named. */

const use = (what: string): object => ({
  title: `Which ${what}`,
  description:
    'A built-in name; a path that starts with ./ or / (relative to this file); or a package. #Name picks an export, else default.',
  type: 'string',
  extension: true,
});

const options = (what: string): object => ({
  title: `Options of the ${what}`,
  description: `Checked against the schema of the ${what}.`,
  type: 'object',
});

/**
 * An entry `{ use, options }`, or only a name.
 * @param what - what it names, for messages: `plugin`, `queuing policy`
 * @param more - further properties of the entry
 * @param rest - further keywords of the entry itself
 */
export const entry = (what: string, more: object = {}, rest: object = {}): object => ({
  type: ['object', 'string'], // A name alone is an entry without options.
  additionalProperties: false,
  required: ['use'],
  properties: { use: use(what), options: options(what), ...more },
  ...rest,
});

/**
 * Plugins: entries that say what happens when a hook throws.
 * @param what - what they are called in messages
 * @param owner - what `crash` closes
 */
export const plugins = (title: string, what: string, owner: string): object => ({
  title,
  description: 'In the order in which they are set up and their hooks run.',
  type: 'array',
  default: [],
  items: entry(what, {
    onError: {
      title: 'When a hook throws',
      description: `log: continue; disable: detach the plugin; crash: close the ${owner}.`,
      type: 'string',
      enum: ['log', 'disable', 'crash'],
      default: 'log',
    },
  }),
});

/** Modules with `setup` and `close`. */
export const preload = (title: string, owner: string): object => ({
  title,
  description: `Modules whose setup is called before anything of the ${owner} is there, and whose close after it has closed.`,
  type: 'array',
  default: [],
  items: entry('module'),
});
