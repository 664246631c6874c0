/** What a handler gives back that has answered by itself. */
export const NO_REPLY: unique symbol = Symbol('no reply');
