#!/usr/bin/env bash
# One path for each data file, as a SLURM job array. Submit again after a time-out: finished files are skipped and
# a path that was cut short continues behind its last step.
#
#   sbatch --array=0-2 examples/slurm_array.sh RESULTS a.libsvm b.libsvm.gz c.libsvm.xz
#
#SBATCH --job-name=screenpath
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@60
set -euo pipefail
results=$1
shift
files=("$@")
if (( SLURM_ARRAY_TASK_ID >= ${#files[@]} )); then
  echo "task $SLURM_ARRAY_TASK_ID: only ${#files[@]} files were given" >&2
  exit 2
fi
file=${files[$SLURM_ARRAY_TASK_ID]}
name=$(basename "$file")
for ending in gz bz2 xz libsvm svm csv tsv txt parquet npy; do  # only these: a.x.libsvm and a.y.libsvm are two runs
  name=${name%."$ending"}
done

# `exec`: the SIGTERM that SLURM sends a minute before the end reaches screenpath itself, which keeps finished steps.
exec screenpath svm "$file" --grid 100 --scale maxabs --out "$results/$name" --resume \
  --threads "${SLURM_CPUS_PER_TASK:-1}"
