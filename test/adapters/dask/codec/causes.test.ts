import { expect, it } from 'vitest';
import { causesIn } from '../../../../adapters/dask/wire/pickle.ts';

// As workers of Dask 2026.8.0 send them: of `raise RuntimeError('row 5 cannot be parsed') from e`, where e is what int('12,7')
// raises; of an OSError that is raised while a KeyError is handled; and of one without a cause.
const FROM = [
  'gAWVCQMAAAAAAACMFnRibGliLnBpY2tsaW5nX3N1cHBvcnSUjB11bnBpY2tsZV9leGNlcHRpb25fd2l0aF9hdHRyc5STlCiMCGJ1',
  'aWx0aW5zlIwMUnVudGltZUVycm9ylJOUfZQojAhfX2RpY3RfX5R9lIwEYXJnc5SMFnJvdyA1IGNhbm5vdCBiZSBwYXJzZWSUhZR1',
  'aAIoaAOMClZhbHVlRXJyb3KUk5R9lChoB32UaAmMLmludmFsaWQgbGl0ZXJhbCBmb3IgaW50KCkgd2l0aCBiYXNlIDEwOiAnMTIs',
  'NyeUhZR1TmgAjBJ1bnBpY2tsZV90cmFjZWJhY2uUk5SMBXRibGlilIwFRnJhbWWUk5QpgZR9lCiMCGZfbG9jYWxzlH2UjAlmX2ds',
  'b2JhbHOUfZSMBmZfY29kZZRoFIwEQ29kZZSTlCmBlH2UKIwLY29fZmlsZW5hbWWUjAZqb2IucHmUjAdjb19uYW1llIwEd29ya5SM',
  'C2NvX2FyZ2NvdW50lEsAjBFjb19rd29ubHlhcmdjb3VudJRLAIwLY29fdmFybmFtZXOUKYwKY29fbmxvY2Fsc5RLAIwMY29fc3Rh',
  'Y2tzaXpllEsAjAhjb19mbGFnc5RLQIwOY29fZmlyc3RsaW5lbm+USwB1YowIZl9saW5lbm+USwZ1YksEToeUUpROiU4pdJRSlGgP',
  'YmgTaBYpgZR9lChoGX2UaBt9lCiMCF9fbmFtZV9flIwIX19tYWluX1+UjAhfX2ZpbGVfX5SMBzxzdGRpbj6UdWgdaB8pgZR9lCho',
  'Img5aCSMCDxtb2R1bGU+lGgmSwBoJ0sAaCgpaClLAGgqSwBoK0tAaCxLAHViaC1LF3ViSxVoFIwJVHJhY2ViYWNrlJOUKYGUfZQo',
  'jAh0Yl9mcmFtZZRoFimBlH2UKGgZfZRoG32UaB1oHymBlH2UKGgiaCNoJGglaCZLAGgnSwBoKCloKUsAaCpLAGgrS0BoLEsAdWJo',
  'LUsGdWKMCXRiX2xpbmVub5RLBnVih5RSlGgxiE4pdJRSlGgIYi4=',
].join('');
const WHILE = [
  'gAWVAQMAAAAAAACMFnRibGliLnBpY2tsaW5nX3N1cHBvcnSUjB11bnBpY2tsZV9leGNlcHRpb25fd2l0aF9hdHRyc5STlCiMCGJ1',
  'aWx0aW5zlIwRRmlsZU5vdEZvdW5kRXJyb3KUk5R9lCiMCF9fZGljdF9flH2UjARhcmdzlEsCjAxubyBzdWNoIGZpbGWUhpSMBWVy',
  'cm5vlEsCjAhzdHJlcnJvcpRoCowIZmlsZW5hbWWUjAV4LmNzdpR1TmgAjBJ1bnBpY2tsZV90cmFjZWJhY2uUk5SMBXRibGlilIwF',
  'RnJhbWWUk5QpgZR9lCiMCGZfbG9jYWxzlH2UjAlmX2dsb2JhbHOUfZQojAhfX25hbWVfX5SMCF9fbWFpbl9flIwIX19maWxlX1+U',
  'jAc8c3RkaW4+lHWMBmZfY29kZZRoEowEQ29kZZSTlCmBlH2UKIwLY29fZmlsZW5hbWWUaB6MB2NvX25hbWWUjAg8bW9kdWxlPpSM',
  'C2NvX2FyZ2NvdW50lEsAjBFjb19rd29ubHlhcmdjb3VudJRLAIwLY29fdmFybmFtZXOUKYwKY29fbmxvY2Fsc5RLAIwMY29fc3Rh',
  'Y2tzaXpllEsAjAhjb19mbGFnc5RLQIwOY29fZmlyc3RsaW5lbm+USwB1YowIZl9saW5lbm+USxd1YksVaBKMCVRyYWNlYmFja5ST',
  'lCmBlH2UKIwIdGJfZnJhbWWUaBQpgZR9lChoF32UaBl9lGgfaCEpgZR9lChoJIwGam9iLnB5lGgljAVvdGhlcpRoJ0sAaChLAGgp',
  'KWgqSwBoK0sAaCxLQGgtSwB1YmguSwt1YowJdGJfbGluZW5vlEsLdWKHlFKUaAIoaAOMCEtleUVycm9ylJOUfZQoaAd9lGgJjAFh',
  'lIWUdU5oEWgUKYGUfZQoaBd9lGgZfZRoH2ghKYGUfZQoaCRoOmglaDtoJ0sAaChLAGgpKWgqSwBoK0sAaCxLQGgtSwB1YmguSwt1',
  'YksJToeUUpROiU4pdJRSlGhCYolOKXSUUpRoCGIu',
].join('');
const ALONE = [
  'gAWVQwIAAAAAAACMFnRibGliLnBpY2tsaW5nX3N1cHBvcnSUjB11bnBpY2tsZV9leGNlcHRpb25fd2l0aF9hdHRyc5STlCiMCGJ1',
  'aWx0aW5zlIwKVmFsdWVFcnJvcpSTlH2UKIwIX19kaWN0X1+UfZSMBGFyZ3OUKXVOaACMEnVucGlja2xlX3RyYWNlYmFja5STlIwF',
  'dGJsaWKUjAVGcmFtZZSTlCmBlH2UKIwIZl9sb2NhbHOUfZSMCWZfZ2xvYmFsc5R9lCiMCF9fbmFtZV9flIwIX19tYWluX1+UjAhf',
  'X2ZpbGVfX5SMBzxzdGRpbj6UdYwGZl9jb2RllGgMjARDb2RllJOUKYGUfZQojAtjb19maWxlbmFtZZRoGIwHY29fbmFtZZSMCDxt',
  'b2R1bGU+lIwLY29fYXJnY291bnSUSwCMEWNvX2t3b25seWFyZ2NvdW50lEsAjAtjb192YXJuYW1lc5QpjApjb19ubG9jYWxzlEsA',
  'jAxjb19zdGFja3NpemWUSwCMCGNvX2ZsYWdzlEtAjA5jb19maXJzdGxpbmVub5RLAHVijAhmX2xpbmVub5RLF3ViSxVoDIwJVHJh',
  'Y2ViYWNrlJOUKYGUfZQojAh0Yl9mcmFtZZRoDimBlH2UKGgRfZRoE32UaBloGymBlH2UKGgejAZqb2IucHmUaB+MBXBsYWlulGgh',
  'SwBoIksAaCMpaCRLAGglSwBoJktAaCdLAHViaChLDXVijAl0Yl9saW5lbm+USw11YoeUUpROiU4pdJRSlGgIYi4=',
].join('');

const causes = (pickle: string): readonly string[] => causesIn(Buffer.from(pickle, 'base64'));

it('an exception names what it was raised from', () => {
  expect(causes(FROM)).toEqual(["ValueError: invalid literal for int() with base 10: '12,7'"]);
});

it('and what was handled when it was raised', () => {
  expect(causes(WHILE)).toEqual(['KeyError: a']);
});

it('one that has no cause, or cannot be read, has none', () => {
  expect(causes(ALONE)).toEqual([]);
  for (let end = 0; end < 791; end += 7) {
    expect(causesIn(Buffer.from(FROM, 'base64').subarray(0, end))).toEqual([]);
  }
});

it('a pickle within another one is read, and no further one', () => {
  const within = (pickle: Uint8Array): Buffer => {
    const head = Buffer.from([0x80, 5, 0x8e, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeUInt32LE(pickle.length, 3);
    return Buffer.concat([head, pickle, Buffer.from('.')]);
  };
  const once = within(Buffer.from(WHILE, 'base64'));
  expect(causesIn(once)).toEqual(['KeyError: a']);
  expect(causesIn(within(once))).toEqual([]);
});
