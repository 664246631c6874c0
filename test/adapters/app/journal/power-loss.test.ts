/** What a journal has on the disk when the power is lost. */
import { expect, it } from 'vitest';
import { JournalFolder } from '../../../../adapters/app/journal-folder.ts';
import { VirtualClock } from '../../../../adapters/clocks/virtual-clock.ts';
import { Dice } from '../../../dst/dice.ts';
import { MemoryDisk } from '../../../dst/disk/memory-disk.ts';

it('the folders that a journal makes for itself are still there after a loss of power', () => {
  for (let seed = 0; seed < 20; seed++) {
    const disk = new MemoryDisk(new Dice(seed), new VirtualClock());
    JournalFolder.open('/var/lib/yardmaster', disk.openProcess());
    disk.losePower();
    const left = disk.openProcess().readdirSync('/var/lib/yardmaster');
    expect(['lock.1', 'lock.1.beat']).toEqual(expect.arrayContaining(left));
  }
});

it('the lock of a scheduler that has died with its machine, or alone, is taken over', () => {
  for (let seed = 0; seed < 20; seed++) {
    const disk = new MemoryDisk(new Dice(seed), new VirtualClock());
    JournalFolder.open('/journal', disk.openProcess());
    JournalFolder.open('/journal', disk.openProcess());
    disk.losePower();
    JournalFolder.open('/journal', disk.openProcess());
  }
});
