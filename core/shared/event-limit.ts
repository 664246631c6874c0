/** What an event may occupy that a client, worker or task logs: all topics are kept in the memory of the scheduler. */
export const EVENT_BYTES_MAX = 1024 * 1024;
