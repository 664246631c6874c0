import { describe, expect, it } from 'vitest';
import { byValue, type Token, token } from '../../../core/api/token.ts';
import { collaborator, Container, inject } from '../../../core/plugin-host/injection.ts';

const VOLUME: Token<number> = token('volume');

@collaborator
class Speaker {
  constructor(@inject(VOLUME) readonly volume: number) {}
}

@collaborator
class Radio {
  constructor(
    readonly speaker: Speaker,
    readonly station = 'one',
  ) {}
}

const volume = (value: number): Container => new Container().register([byValue(VOLUME, value)]);

describe('a collaborator', () => {
  it('is given others by the types of its parameters, and keeps defaults', () => {
    const { speaker, station } = volume(3).get(Radio);
    expect([speaker.volume, speaker.constructor, station]).toEqual([3, Speaker, 'one']);
  });

  it('is made once for each host', () => {
    const [one, two] = [volume(1), volume(2)];
    expect(one.get(Radio).speaker).toBe(one.get(Speaker));
    expect(two.get(Speaker).volume).toBe(2);
    expect(one.get(Speaker).volume).toBe(1);
  });

  it('is refused where it is declared when a parameter has no class at run time', () => {
    expect(() => {
      @collaborator
      class Silent {
        constructor(readonly volume: number) {}
      }
      return Silent;
    }).toThrow('parameter 1 of Silent has no class at run time: use @inject(TOKEN)');
  });

  it('that nothing provides is named with its token', () => {
    expect(() => new Container().get(Radio)).toThrow(
      /the collaborator "Radio" cannot be made: .*volume/s,
    );
  });
});
