import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shieldedPolicy } from '../../../../core/plugin-host/policy-slots.ts';
import { weightedFairShare } from '../../../../policies/fairness/weighted-fair-share.ts';
import { direct } from '../../../../policies/queuing/direct.ts';
import { family } from '../../../../policies/queuing/family.ts';
import { coAssign } from '../../../../policies/queuing/co-assign.ts';
import { balanced } from '../../../../policies/worker-selection/balanced.ts';
import { localityFirst } from '../../../../policies/worker-selection/locality-first.ts';
import { effort } from '../../../kit/effort.ts';
import { scenario } from '../../../kit/random-scenario.ts';
import { kernelFor, type MakePolicies, play } from '../../../kit/random-world.ts';
import { made } from '../../../kit/made.ts';
import { RULES } from '../../../kit/rules.ts';

const POLICIES: readonly (readonly [string, MakePolicies])[] = [
  [
    'balanced, family, weighted-fair-share',
    (workerSaturation) => ({
      workerSelection: made(balanced),
      queuing: made(family, { workerSaturation, familySize: 2 }),
      fairness: made(weightedFairShare, { weights: { c: 3 } }),
    }),
  ],
  [
    'locality-first, direct',
    () => ({ workerSelection: made(localityFirst), queuing: made(direct) }),
  ],
  ['rules of several extensions', () => ({ rules: RULES })],
  [
    'locality-first, co-assign and rules of several extensions',
    () => ({
      workerSelection: made(localityFirst),
      queuing: made(coAssign),
      rules: RULES.map((rule) => ({ ...rule, policy: shieldedPolicy('rules', rule.policy) })),
    }),
  ],
  [
    'balanced, co-assign',
    () => ({
      workerSelection: made(balanced, { holders: 1, others: 1 }),
      queuing: made(coAssign),
    }),
  ],
];

it.each(POLICIES)(
  'with %s every invariant holds after every stimulus, and all is done in the end',
  (_names, makePolicies) => {
    fc.assert(
      fc.property(scenario, (scene) => {
        const first = play(scene, kernelFor(scene, makePolicies), makePolicies);
        const again = play(scene, kernelFor(scene, makePolicies), makePolicies);
        // The same stimuli have the same consequences.
        expect(again.transcript).toEqual(first.transcript);
      }),
      effort(200),
    );
  },
);
