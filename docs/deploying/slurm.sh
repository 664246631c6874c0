#!/bin/sh
#SBATCH --job-name=yardmaster
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
# A minute before the time is over all processes get SIGTERM: workers give their results to others, and end.
#SBATCH --signal=TERM@60
set -eu

: "${YARDMASTER_ACCESS:=$PWD/access.json}" "${THREADS:=${SLURM_CPUS_PER_TASK:-1}}" "${HOST:=$(hostname)}"
export YARDMASTER_ACCESS

[ -e "$YARDMASTER_ACCESS" ] || node_modules/.bin/yardmaster access new "$YARDMASTER_ACCESS"
rm -f address.txt
node_modules/.bin/yardmaster scheduler --host "$HOST" --port 0 --no-dashboard > address.txt &
scheduler=$!
trap 'kill "$scheduler" 2>/dev/null || true' EXIT
until [ -s address.txt ]; do
  kill -0 "$scheduler"
  sleep 0.2
done

# One worker for each task of the job. The folder is shared by all nodes, and with it the access file and the modules.
srun sh -c 'exec node_modules/.bin/yardmaster worker "$1" --host "${WORKER_HOST:-$(hostname)}" --threads "$2"' \
  worker "$(head -n 1 address.txt)" "$THREADS" &
workers=$!

# The work itself: a program that calls Client.connect(process.argv[2]).
node "$1" "$(head -n 1 address.txt)"
kill "$workers"
wait "$workers" || true
