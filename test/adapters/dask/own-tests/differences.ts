/** Tests of Dask that cannot pass with our scheduler, and why. */

const IN_ITS_PROCESS = 'the test looks at the log of the scheduler, which is in another process';

const DIFFERENCES: readonly (readonly [test: string, why: string])[] = [
  ['tests/test_active_memory_manager.py::test_RetireWorker_with_actor', IN_ITS_PROCESS],
  ['tests/test_client.py::test_client_with_name', IN_ITS_PROCESS],
  ['tests/test_steal.py::test_dont_steal_already_released', IN_ITS_PROCESS],
  [
    'tests/test_client.py::test_run_rpc_error',
    'a worker that refuses connections is reported at once, and not as a time-out',
  ],
  [
    'tests/test_semaphore.py::test_oversubscribing_leases',
    'a lease that has timed out is over; Dask counts it again, above the maximum',
  ],
  [
    'tests/test_stories.py::test_worker_story_with_deps',
    'compute-task has the stimulus id of its cause',
  ],
  [
    'tests/test_worker_memory.py::test_pause_prevents_deps_fetch',
    'the test needs two tasks in one message; each is sent when it is assigned',
  ],
  ['tests/test_client.py::test_logs', "our log has no names of Dask's modules in its texts"],
  [
    'tests/test_client.py::test_annotations_blockwise_unpack',
    "a setting of the client does not reach the scheduler, as with Dask's in another process",
  ],
  [
    'tests/test_scheduler.py::test_graph_execution_width',
    'short tasks with small results share a slot (scheduler.slotWork)',
  ],
];

/** Why a test fails with our scheduler; undefined: it should pass. */
export function whyDifferent(test: string): string | undefined {
  return DIFFERENCES.find(([name]) => test.split('[')[0] === name)?.[1];
}
