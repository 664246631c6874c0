/** What a thread of piscina loads for `first-result.ts`. */
export default (): number => 0;
