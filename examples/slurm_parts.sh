#!/usr/bin/env bash
# One path in parts: each task of a SLURM job array computes a part of the grid, the last command puts them together.
#
#   job=$(sbatch --parsable --array=1-8 examples/slurm_parts.sh DATA RESULTS svm --grid 100 --scale maxabs)
#   sbatch --dependency=afterok:$job --wrap 'screenpath merge RESULTS/part-* -o RESULTS/whole'
#
# With `cv svm` in place of `svm` the parts are folds, with `sparse-svm` values of beta. Submit again after a time-out:
# finished parts are skipped, and one that was cut short continues. To submit some tasks alone, say how many parts
# there are: PARTS=8 sbatch --array=3,5 examples/slurm_parts.sh ...
#
#SBATCH --job-name=screenpath-parts
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@60
set -euo pipefail
data=$1
results=$2
shift 2
model=("$1")
shift
if [[ ${model[0]} == cv ]]; then
  model+=("$1")
  shift
fi
task=$SLURM_ARRAY_TASK_ID
parts=${PARTS:-$SLURM_ARRAY_TASK_COUNT}

# `exec`: the SIGTERM that SLURM sends a minute before the end reaches screenpath itself, which keeps what is done.
exec screenpath "${model[@]}" "$data" "$@" --part "$task/$parts" --out "$results/part-$task" --resume \
  --log-format json
