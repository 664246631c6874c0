import { describe, expect, it } from 'vitest';
import { TurnBudget } from '../../../core/shared/turn.ts';
import { HandClock } from '../../kit/hand-clock.ts';

const BUDGET_MS = 10;

function start() {
  const clock = new HandClock();
  const budget = new TurnBudget(clock, BUDGET_MS);
  const done: string[] = [];
  /** A piece of work of this duration. */
  const wait = (name: string, ms: number): void => {
    budget.later(() => {
      done.push(name);
      clock.pass(ms);
    });
  };
  return { clock, budget, done, wait };
}

describe('the budget of a turn', () => {
  it('admits work until it is spent', () => {
    const { clock, budget } = start();
    expect(budget.admits()).toBe(true);
    clock.pass(BUDGET_MS - 1);
    expect(budget.admits()).toBe(true);
    clock.pass(1);
    expect(budget.admits()).toBe(false);
  });

  it('begins anew with the next turn', () => {
    const { clock, budget } = start();
    budget.admits();
    clock.pass(BUDGET_MS);
    clock.turn();
    clock.pass(1000);
    expect(budget.admits()).toBe(true);
  });

  it('admits no work while other work waits', () => {
    const { clock, budget, wait } = start();
    wait('first', 1);
    expect(budget.admits()).toBe(false);
    clock.turn();
    expect(budget.admits()).toBe(true);
  });

  it('is shared by what is read and what waits', () => {
    const { clock, budget, done, wait } = start();
    budget.admits();
    clock.pass(BUDGET_MS - 1);
    wait('a', 1);
    wait('b', 1);
    clock.turn();
    expect(done).toEqual(['a']);
    clock.turn();
    expect(done).toEqual(['a', 'b']);
  });

  it('does one piece a turn even if that takes longer', () => {
    const { clock, done, wait } = start();
    wait('a', 5 * BUDGET_MS);
    wait('b', 5 * BUDGET_MS);
    clock.turn();
    expect(done).toEqual(['a']);
    clock.turn();
    expect(done).toEqual(['a', 'b']);
  });

  it('does nothing more in a turn that others have spent, and continues in the next one', () => {
    const { clock, budget, done, wait } = start();
    budget.admits();
    clock.pass(BUDGET_MS);
    wait('a', 1);
    clock.turn();
    expect(done).toEqual([]);
    clock.turn();
    expect(done).toEqual(['a']);
  });

  it('is given in the order of the line, a piece each', () => {
    const { clock, budget, done } = start();
    const goOn = (name: string): void => {
      budget.later(() => {
        done.push(name);
        clock.pass(BUDGET_MS / 2);
        goOn(name);
      });
    };
    for (const name of ['a', 'b', 'c']) goOn(name);
    for (let turn = 0; turn < 3; turn++) clock.turn();
    expect(done).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
  });

  it('gives endless work one piece a turn, however short', () => {
    const { clock, budget, done } = start();
    const goOn = (): void => {
      budget.later(() => {
        done.push('x');
        goOn();
      });
    };
    goOn();
    clock.turn();
    expect(done).toEqual(['x']);
  });

  it('outlives work that throws', () => {
    const { clock, budget, done, wait } = start();
    budget.later(() => {
      throw new Error('broken');
    });
    wait('next', 1);
    expect(() => clock.turn()).toThrow('broken');
    clock.turn();
    expect(done).toEqual(['next']);
  });

  it('arms no timer when nothing happens', () => {
    const { clock, budget } = start();
    budget.admits();
    expect(clock.turn()).toBe(1);
    expect(clock.turn()).toBe(0);
  });

  it('is the same for all that share a clock', () => {
    const clock = new HandClock();
    expect(TurnBudget.of(clock)).toBe(TurnBudget.of(clock));
    expect(TurnBudget.of(clock)).not.toBe(TurnBudget.of(new HandClock()));
  });
});
