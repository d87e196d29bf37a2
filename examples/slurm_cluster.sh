#!/usr/bin/env bash
# One path spread over the nodes of a SLURM job, for a data set larger than one machine. Convert it first, once:
#
#   screenpath convert part1.libsvm.gz part2.libsvm.gz SHARDS --jobs 8
#   sbatch --nodes=4 examples/slurm_cluster.sh SHARDS RESULTS
#
# SHARDS lies on a file system that all nodes share. The scheduler and screenpath itself run on the first node, one
# worker a CPU on all nodes. Submit again after a time-out: the path continues behind its last step, on any number of
# nodes and with the same numbers. With dask-jobqueue or a scheduler that runs already, only the last command is needed.
#
#SBATCH --job-name=screenpath-cluster
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
set -euo pipefail
shards=$1
results=$2
mkdir -p "$(dirname "$results")"
meeting=$results.scheduler.json
rm -f "$meeting"

dask scheduler --scheduler-file "$meeting" --port 0 --no-dashboard &
# No memory limit: mapped shards count as a worker's memory, and Dask would stop it for them.
srun --overlap dask worker --scheduler-file "$meeting" --nworkers "${SLURM_CPUS_PER_TASK:-1}" --nthreads 1 \
  --memory-limit 0 --no-dashboard &
trap 'kill $(jobs -p) 2>/dev/null; rm -f "$meeting"' EXIT

until [[ -s $meeting ]]; do sleep 0.2; done
address=$(sed -n 's/.*"address": "\([^"]*\)".*/\1/p' "$meeting")

screenpath svm "$shards" --grid 50 --scheduler "$address" --out "$results" --resume &
path=$!
trap 'kill -TERM $path' TERM # finished steps are kept
wait $path || code=$?
wait $path 2>/dev/null || code=$? # again: the first wait ends with the signal, not with the command
exit "${code:-0}"
