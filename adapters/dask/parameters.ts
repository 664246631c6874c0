/** The parameters of the operations on Dask's wire. What is not among them is refused, as Dask's handlers refuse it. */
import type { Fields } from './wire/codec.ts';
import { OWN_ADDRESSES } from './wire/wrong-port.ts';
import { PythonException } from './wire/py-errors.ts';

/**
 * Requests: the parameters without which the handlers of all releases raise a `TypeError`, then in brackets those that
 * some release between 2022.12.1 and the current one takes besides. `**` stands for any. A test compares this table with
 * the signatures in the releases that are installed.
 */
const REQUESTS: Readonly<Record<string, string>> = {
  adaptive_target: '[target_duration]',
  add_keys: '[worker keys stimulus_id]',
  amm_handler: 'method [policy options]',
  benchmark_hardware: '',
  broadcast: 'msg [workers hosts nanny serializers on_error]',
  call_stack: '[keys]',
  cancel: 'keys client [force reason msg]',
  check_idle: '',
  delete_worker_data: 'worker_address keys [stimulus_id]',
  dump_cluster_state_to_url: 'url exclude format [**]',
  dump_state: '[exclude]',
  echo: '[data]',
  event_clear: '[name]',
  event_is_set: '[name]',
  event_set: '[name]',
  event_wait: '[name timeout]',
  events: '[topic]',
  eventstream: '[**]',
  feed: '[function setup teardown interval **]',
  gather: 'keys [serializers]',
  get_cluster_state: 'exclude',
  get_data: '[keys who serializers max_connections]',
  get_error_cause: '[keys **]',
  get_logs: '[start n timestamps]',
  get_metadata: 'keys [default]',
  get_profile_metadata: '[**]',
  get_runspec: '[key **]',
  get_story: 'keys_or_stimuli',
  get_task_prefix_states: '',
  get_task_status: '[keys]',
  get_task_stream: '[start stop count start_index]',
  get_task_stream_index: '',
  get_worker_service_addr: 'worker service_name [protocol]',
  has_what: '[workers]',
  heartbeat_worker:
    'address metrics [resolve_address now resources host_info executing extensions]',
  host_info: '',
  identity: '[n_workers]',
  lock_acquire: '[name id timeout]',
  lock_release: '[name id]',
  log_event: 'topic msg',
  logs: '[start n timestamps]',
  memory_sampler_start: 'client measure interval',
  memory_sampler_stop: 'key',
  multi_lock_acquire: '[locks id timeout num_locks]',
  multi_lock_release: '[id]',
  nbytes: '[keys summary]',
  ncores: '[workers]',
  ncores_running: '[workers]',
  performance_report: 'start last_count [code mode]',
  processing: '[workers]',
  profile: '[workers scheduler server merge_workers start stop key]',
  profile_metadata: '[workers start stop profile_cycle_interval]',
  proxy: '[msg worker serializers]',
  publish_delete: '[name names client uid]',
  publish_get: '[name names client]',
  publish_list: '',
  publish_put: '[name names keys data override client uid]',
  publish_wait_flush: 'uid',
  pubsub_add_publisher: '[name worker]',
  queue_create: '[name client maxsize]',
  queue_get: '[name client timeout batch]',
  queue_put: '[name key data client timeout]',
  queue_qsize: '[name client]',
  rebalance: '[keys workers stimulus_id measure sender_min recipient_max sender_recipient_gap]',
  'register-client': 'client versions',
  'register-worker':
    'address status server_id stimulus_id [keys nthreads name resolve_address nbytes types now resources host_info memory_limit metrics pid services local_directory versions nanny extra]',
  register_nanny: '[address]',
  register_nanny_plugin: 'plugin [name idempotent]',
  register_scheduler_plugin: 'plugin [name idempotent]',
  register_worker_plugin: 'plugin [name idempotent]',
  remove_worker: 'address [stimulus_id safe expected close]',
  replicate: '[keys n workers branching_factor delete lock stimulus_id]',
  restart: '[client timeout wait_for_workers stimulus_id]',
  restart_workers: 'stimulus_id [workers client timeout wait_for_workers on_error]',
  // The rest of what `workers_to_close` takes: Dask passes on to it what `retire_workers` does not know.
  retire_workers:
    '[workers names close_workers remove stimulus_id memory_ratio n key minimum target attribute]',
  retry: 'keys [client]',
  run_function: 'function [args kwargs wait]',
  scatter: '[data workers client broadcast timeout]',
  semaphore_acquire: '[name timeout lease_id]',
  semaphore_close: '[name]',
  semaphore_refresh_leases: '[name lease_ids]',
  semaphore_register: '[name max_leases lease_timeout]',
  semaphore_release: '[name lease_id]',
  semaphore_value: '[name]',
  set_metadata: 'keys [value]',
  set_resources: 'worker [resources]',
  set_restrictions: 'worker',
  shuffle_barrier: 'id run_id [consistent]',
  shuffle_get: 'id worker [schema column npartitions]',
  shuffle_get_or_create: 'worker [shuffle_id id key type spec]',
  shuffle_restrict_task: 'id run_id key worker',
  start_task_metadata: '[name]',
  stop_task_metadata: '[name]',
  subscribe_worker_status: '',
  terminate: '[fast close_workers timeout reason]',
  unregister: 'address stimulus_id [safe expected close]',
  unregister_nanny_plugin: 'name',
  unregister_scheduler_plugin: 'name',
  unregister_worker_plugin: 'name',
  update_data: 'who_has nbytes [client]',
  variable_get: '[name client timeout]',
  variable_set: '[name key data client timeout]',
  versions: '[packages]',
  who_has: '[keys]',
  worker_logs: '[n workers nanny]',
  workers_to_close: '[memory_ratio n key minimum target attribute]',
  [OWN_ADDRESSES]: '',
};

/** Messages of the streams of clients and workers, likewise. `client` and `worker` are the sender's where they lack. */
const STREAMS: Readonly<Record<string, string>> = {
  'add-keys': '[worker keys stimulus_id]',
  'cancel-keys': 'keys [client force reason msg]',
  'client-desires-keys': '[keys client]',
  'client-releases-keys': '[keys client stimulus_id]',
  'close-client': '[client stimulus_id]',
  'close-stream': '[**]',
  'heartbeat-client': '[client]',
  'keep-alive': '[**]',
  'log-event': 'topic msg [worker]',
  'long-running': 'key stimulus_id compute_duration [worker run_id]',
  publish_flush_batched_send: 'uid [client **]',
  'pubsub-add-subscriber': '[name worker client]',
  'pubsub-msg': '[name msg worker client]',
  'pubsub-remove-publisher': '[name worker]',
  'pubsub-remove-subscriber': '[name worker client]',
  'queue-future-release': '[name key client]',
  queue_release: '[name client]',
  'release-worker-data': 'key stimulus_id [worker]',
  'report-key': '[key ts client]',
  'request-refresh-who-has': 'keys stimulus_id [worker]',
  reschedule: 'key stimulus_id [worker]',
  'steal-response': 'key state stimulus_id [worker]',
  'subscribe-topic': 'topic [client]',
  'task-erred': 'key stimulus_id [**]',
  'task-finished': 'key stimulus_id [**]',
  'unsubscribe-topic': 'topic [client]',
  'update-data': 'who_has nbytes [client]',
  'update-graph':
    '[keys client tasks dependencies restrictions priority loose_restrictions resources submitting_task retries user_priority actors fifo_timeout annotations code stimulus_id graph_header graph_frames expr_ser span_metadata internal_priority]',
  'update-graph-hlg':
    '[keys client hlg dependencies restrictions priority loose_restrictions resources submitting_task retries user_priority actors fifo_timeout code]',
  'variable-future-received-confirm': '[name key token client]',
  'variable-future-release': '[name key token client]',
  variable_delete: '[name client]',
  'worker-status-change': 'status stimulus_id [worker]',
};

/** Fields of every message that are not for its handler. */
const ENVELOPE: ReadonlySet<string> = new Set(['op', 'reply', 'close', 'serializers']);

export interface Parameters {
  readonly required: readonly string[];
  /** With those that are required. undefined: any. */
  readonly known: ReadonlySet<string> | undefined;
}

/** Parameters by operation: those of requests, and those of messages on streams. */
export const PARAMETERS: Readonly<Record<'request' | 'stream', ReadonlyMap<string, Parameters>>> = {
  request: tableOf(REQUESTS),
  stream: tableOf(STREAMS),
};

/**
 * Checks the parameters of a message. One whose operation is not known is not checked.
 * @throws PythonException `TypeError`, in the words of Python
 */
export function checkParameters(kind: 'request' | 'stream', op: string, message: Fields): void {
  const parameters = PARAMETERS[kind].get(op);
  if (parameters === undefined) return;
  const { required, known } = parameters;
  if (known !== undefined) {
    for (const name in message) {
      if (known.has(name) || ENVELOPE.has(name)) continue;
      throw refused(op, `got an unexpected keyword argument '${name}'`);
    }
  }
  for (const name of required) {
    if (message[name] !== undefined) continue;
    const missing = required.filter((each) => message[each] === undefined);
    const names = missing.map((each) => `'${each}'`).join(' and ');
    const plural = missing.length === 1 ? '' : 's';
    throw refused(op, `missing ${missing.length} required argument${plural}: ${names}`);
  }
}

function refused(op: string, why: string): PythonException {
  return new PythonException('TypeError', `${op.replaceAll('-', '_')}() ${why}`);
}

function tableOf(texts: Readonly<Record<string, string>>): ReadonlyMap<string, Parameters> {
  return new Map(Object.entries(texts).map(([op, text]) => [op, parse(text)]));
}

/** @param text - `one two [three **]` */
function parse(text: string): Parameters {
  const [required = '', optional = ''] = text.split(/[[\]]/);
  const names = (list: string): string[] => list.split(' ').filter((name) => name !== '');
  const all = [...names(required), ...names(optional)];
  return {
    required: names(required),
    known: all.includes('**') ? undefined : new Set(all),
  };
}
