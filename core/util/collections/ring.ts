/** The position after this one in a ring of that length. */
export function nextInRing(position: number, length: number): number {
  return position + 1 === length ? 0 : position + 1;
}
