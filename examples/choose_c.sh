#!/usr/bin/env bash
# From data to decisions: cross-validate the path, predict a test part by the chosen step, and hand the model to LIBLINEAR,
# which decides the same. Two labels or more (one path for each label then).
#
#   examples/choose_c.sh [TRAIN TEST [FOLDER [OPTIONS OF cv svm...]]]
#
# Without files: the first 1400 digits of data_samples against the other 397. The comparison with LIBLINEAR's own predict
# needs Python with its package (pip install liblinear-official); PYTHON names the interpreter.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
digits=$here/../data_samples/digits.libsvm
if (( $# < 2 )); then
  head -n 1400 "$digits" > "$work/digits.libsvm"
  tail -n +1401 "$digits" > "$work/digits.t.libsvm"
  set -- "$work/digits.libsvm" "$work/digits.t.libsvm"
fi
train=$1 test=$2 folder=${3:-runs/choose_c}
options=("${@:4}")

screenpath cv svm "$train" --one-vs-rest --folds 5 --grid 20 --cmin 1e-3 --cmax 10 --bias 1 --jobs 2 \
  --out "$folder" --force --no-progress ${options[@]+"${options[@]}"}

echo "test part by the step with the best score:"
screenpath predict "$folder" "$test" --step best -o "$work/ours.csv"

screenpath export "$folder" --step best --to liblinear -o "$folder/liblinear.model" --force

gzip -cdf "$test" > "$work/test.libsvm" # LIBLINEAR reads plain text
"${PYTHON:-python3}" - "$work/test.libsvm" "$folder/liblinear.model" "$work/ours.csv" <<'PROGRAM'
import sys

try:
    from liblinear.liblinearutil import load_model, predict, svm_read_problem
except ImportError:
    sys.exit(print("liblinear-official is not installed: predictions are not compared"))
test, model, ours = sys.argv[1:]
y, rows = svm_read_problem(test)
theirs, _, _ = predict(y, rows, load_model(model), "-q")
with open(ours) as file:
    ours = [float(line) for line in file.read().split()[1:]]
same = sum(a == b for a, b in zip(ours, theirs, strict=True))
print(f"LIBLINEAR decides {same} of {len(ours)} rows alike")
sys.exit(same != len(ours))
PROGRAM
