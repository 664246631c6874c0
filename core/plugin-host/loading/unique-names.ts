import { YardmasterError } from '../../api/errors.ts';
import { type ConfigOrigin, problemLine, type Segment } from '../../config/errors.ts';

/** Names of the extensions of one kind that a configuration lists: each may come once. */
export class UniqueNames {
  private readonly places = new Map<string, string>();

  /** @param what - the kind in the plural, for messages: `worker plugins` */
  constructor(
    private readonly what: string,
    private readonly origin: ConfigOrigin,
  ) {}

  /**
   * @param source - where the extension was loaded from
   * @param at - the entry that names it
   * @param key - what may come only once; default: the name
   * @throws YardmasterError `ERR_PLUGIN_LOAD` with the places of both when the name was added before
   */
  add(name: string, source: string, at: readonly Segment[], key = name): void {
    const use = { at: [...at, 'use'], message: '' };
    const place = `${source} at ${problemLine(use, this.origin).trimEnd()}`;
    const other = this.places.get(key);
    if (other === undefined) {
      this.places.set(key, place);
      return;
    }
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `there are two ${this.what} "${name}", from ${other} and from ${place}; remove one, or give it another name`,
      { name, places: [other, place] },
    );
  }
}
