#!/usr/bin/env bash
# A path of linear SVMs from the shell: compute it, look at the step table, stream it into another program.
#
#   examples/path.sh [DATA] [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:-$here/../data_samples/breast_cancer.libsvm}
folder=${2:-runs/example}

# The run folder holds run.json, steps.csv and coefficients.csv.
screenpath svm "$data" --grid 20 --scale maxabs --bias 1 --out "$folder" --force --quiet

echo "C, relative gap and share of screened samples:"
# Columns are found by name, so that the script survives new ones.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { printf "%10.4g  %8.1e  %5.1f %%\n", $at["C"], $at["rel_gap"], 100 * $at["rejection_ratio"] }' "$folder/steps.csv"

# The same table as a stream, one JSON object a line, without any file.
echo "number of support vectors at the kink, as JSON lines:"
screenpath svm "$data" --c-list 0.1,1 --scale maxabs --bias 1 --out - --format json --quiet \
  | sed -E 's/.*"C": ([^,]*),.*"n_E": ([0-9]*),.*/C = \1: \2/'
