import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';

import { YardmasterError } from '../../../core/api/index.ts';
import type { LogFrame } from '../../../core/log/format.ts';
import { type Past, PastSamples } from '../../dashboard/past/index.ts';
import { segmentPath, segmentsOf } from '../journal/journal-folder.ts';
import { type CheckpointPlace, checkpointsOf } from './checkpoint-index.ts';
import { JournalPlayer } from './journal-player.ts';
import { type LogPlayer, Moments } from './moments.ts';
import { RecordingPlayer, type ReplayOptions } from './recording-player.ts';
import { isRecordingFolder } from './recording-paths.ts';
import { readRecording } from './replay-recording.ts';

/** Transitions and decisions that can be looked back at from a moment. */
const STORY_LENGTH = 10_000;

const JOURNAL_NOTE =
  'A journal holds what clients asked for and what failed, not what ran: tasks whose results were there are shown as not yet computed.';

/** How a recording is read. */
export type OpenOptions = Pick<ReplayOptions, 'allowPolicies'>;

/**
 * Reads a recording, a folder of one or of a journal, or one of its segments, for the dashboard.
 * @throws YardmasterError `ERR_LOG`, `ERR_JOURNAL`, `ERR_REPLAY`, `ERR_PLUGIN_LOAD`
 */
export async function openPast(path: string, options: OpenOptions = {}): Promise<Past> {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder || isRecordingFolder(path)) return (await readPast(path, options)).past;
  const segments = segmentsOf(path).reverse();
  let found: PastFile | undefined;
  for (const number of segments) {
    found = await readPast(segmentPath(path, number), options);
    // The newest segment may not have been begun completely; then the one before it has everything.
    if (found.hasCheckpoint) break;
  }
  if (found !== undefined) return { ...found.past, title: basename(resolve(path)) };
  throw new YardmasterError(
    'ERR_JOURNAL',
    `the folder ${path} holds no journal: give the folder of "yardmaster scheduler --journal", or a recording`,
    { folder: path },
  );
}

interface PastFile {
  readonly past: Past;
  readonly hasCheckpoint: boolean;
}

async function readPast(file: string, options: OpenOptions): Promise<PastFile> {
  const samples = new PastSamples();
  const { player, damage, hasCheckpoint } = await readWhole(file, samples, options);
  const { header, kernel } = player;
  if (kernel === undefined || header === undefined) {
    throw new YardmasterError('ERR_LOG', `the log ${file} ends before its first stimulus`, {
      file,
    });
  }
  samples.finish(kernel.cluster);
  const isJournal = header.segment !== undefined;
  const difference =
    player instanceof RecordingPlayer ? player.replay?.progress.difference : undefined;
  const notes = [
    ...(isJournal ? [JOURNAL_NOTE] : []),
    ...(difference === undefined
      ? []
      : [
          `This version decides otherwise than the one that recorded it, from frame ${difference.sequence} on: what follows is not what happened.`,
        ]),
    ...(damage === undefined ? [] : [`${damage.message}; what comes before it is shown.`]),
  ];
  const read = (from?: CheckpointPlace): AsyncIterable<LogFrame> => readRecording(file, from);
  const checkpoints = isJournal ? undefined : () => checkpointsOf(file);
  const ended = { player, atMs: 1000 * samples.range.toS };
  const makePlayer = (): LogPlayer => playerFor(isJournal, { ...options, recordsDecisions: false });
  const moments = new Moments(read, makePlayer, ended, checkpoints);
  // Why a task is where it is may have begun long before a checkpoint.
  const explained = new Moments(read, () =>
    playerFor(isJournal, { ...options, recordsDecisions: true }),
  );
  const past: Past = {
    ...{ kind: isJournal ? 'journal' : 'recording', title: basename(file), notes, samples },
    ...{
      cluster: kernel.cluster,
      at: (atMs, isExplained) => (isExplained ? explained : moments).at(atMs),
    },
  };
  return { past, hasCheckpoint };
}

interface WholeLog {
  readonly player: RecordingPlayer | JournalPlayer;
  readonly damage: YardmasterError | undefined;
  readonly hasCheckpoint: boolean;
}

async function readWhole(
  file: string,
  samples: PastSamples,
  options: OpenOptions,
): Promise<WholeLog> {
  let player: RecordingPlayer | JournalPlayer | undefined;
  let damage: YardmasterError | undefined;
  let hasCheckpoint = false;
  try {
    for await (const frame of readRecording(file)) {
      player ??= playerFor(isOfJournal(frame), {
        ...options,
        hooks: samples.hooks,
        recordsDecisions: false,
      });
      samples.setTime(frame.timeMs);
      await player.play(frame);
      hasCheckpoint ||= frame.kind === 'checkpoint';
      if (player.kernel !== undefined) samples.observe(player.kernel.cluster);
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || player?.kernel === undefined) throw error;
    damage = error;
  }
  return { player: player ?? playerFor(false, options), damage, hasCheckpoint };
}

function isOfJournal(frame: LogFrame): boolean {
  return frame.kind === 'header' && frame.payload.segment !== undefined;
}

function playerFor(
  isJournal: boolean,
  options: ReplayOptions,
): (RecordingPlayer | JournalPlayer) & LogPlayer {
  return isJournal
    ? new JournalPlayer(options.hooks ?? {})
    : new RecordingPlayer({ ...options, storyLength: STORY_LENGTH });
}
