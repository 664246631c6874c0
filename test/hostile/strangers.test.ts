import { expect, it } from 'vitest';

import { strangers } from './strangers.ts';

it.each(['scheduler', 'data'] as const)(
  'of peers without credentials the %s accepts no connection and decodes no message, and those with keys get in after them',
  async (serves) => {
    expect(await strangers(420, serves)).toEqual({
      attempts: 420,
      accepted: 0,
      messages: 0,
      isOpenToFriends: true,
    });
  },
);
