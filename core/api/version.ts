/** Version of the package, for messages to people; a test compares it with package.json. */
export const VERSION = '0.1.0';
