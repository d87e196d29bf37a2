#!/bin/sh
# Ogawa et al. 2014, RBF kernel: Table IV (eps-path to C = 1e4, six variants, gamma in {0.1/d, 1/d, 10/d}) and the data
# of Figs. 4 and 5 (screening rate over C_ref / C and over C).
#
#     examples/papers/ogawa2014_kernel.sh [DATA_FOLDER] [OUTPUT_FOLDER]
#
# Sets with more than two labels are one label against the rest: dna 3, satimage 1, shuttle 1. Of mushrooms every second
# row is taken, of shuttle every tenth (MUSHROOMS=1, SHUTTLE=1: all; the kernel matrix of shuttle then has 15 GB).
# EPS: accuracy of the eps-path (default 1e-3, the paper's); CMAX: its end (default 1e4); TOL: relative gap of its points.
# GAMMAS: multiples of 1/d (default "0.1 1 10"). SETS="dna-1 bcd-10": only these sets and multiples.
set -eu
out=${2:-}
. "$(dirname "$0")/common.sh"
begin ogawa2014_kernel "Ogawa et al. 2014: Safe sample screening for support vector machines (RBF kernel)"
binary=$data/binary multiclass=$data/multiclass eps=${EPS:-1e-3} cmax=${CMAX:-1e4} tol=${TOL:-1e-4}
gammas=${GAMMAS:-0.1 1 10}

thinned() { # set, file, every: path of a copy with every so-many-th row
    [ ! -f "$2" ] || [ -f "$out/$1-$3.libsvm" ] ||
        gunzip -c "$2" | awk -v every="$3" 'NR % every == 1 || every == 1' >"$out/$1-$3.libsvm"
    echo "$out/$1-$3.libsvm"
}
mushrooms=$(thinned mushrooms "$binary/mushrooms.libsvm.gz" "${MUSHROOMS:-2}")
shuttle=$(thinned shuttle "$multiclass/shuttle.libsvm.gz" "${SHUTTLE:-10}")

section "Table IV, RBF kernel: eps-path ($eps) up to C = $cmax" "The six variants; none is Full, none+shrinking is Shrink. Ratios to Full and, for variants with shrinking, to Shrink. The kernel matrix is computed before the clocks start."
$python "$here/tables.py" header | tee -a "$page"
points=

ratios() { # Full, Shrink, BT1, Shrink+BT1, IT, Shrink+IT: published seconds
    awk -v f="$1" -v s="$2" -v b="$3" -v sb="$4" -v i="$5" -v si="$6" 'BEGIN {
        printf "bt1=%.2f it=%.2f bt1+shrinking=%.2f it+shrinking=%.2f\n", f / b, f / i, s / sb, s / si }'
}

variants() { # set, multiple of 1/d, file, published seconds, options
    set_=$1 multiple=$2 file=$3 seconds=$4
    shift 4
    case " $gammas " in *" $multiple "*) ;; *) return 0 ;; esac
    study "$set_-$multiple" svm "$file" none,bt1,it "$(ratios $seconds)" --kernel rbf --gamma "$multiple/d" --solver smo \
        --shrinking both --tol "$tol" --eps-path "$eps" --cmin 0.001 --cmax "$cmax" "$@"
}

f=$binary/breast_cancer.libsvm.gz
variants bcd 0.1 "$f" "43.8 4.51 9.08 2.8 8.48 2.87" --scale standard
variants bcd 1 "$f" "2.73 0.68 0.435 0.295 0.464 0.294" --scale standard
variants bcd 10 "$f" "0.73 0.4 0.312 0.221 0.266 0.213" --scale standard
f=$multiclass/dna.libsvm.gz
variants dna 0.1 "$f" "298 106 253 87.7 242 80.7" --positive 3
variants dna 1 "$f" "13.9 5.27 7.14 2.5 7.03 2.62" --positive 3
variants dna 10 "$f" "4.98 2.68 3.18 1.96 2.71 1.82" --positive 3
f=$binary/digit1.libsvm.gz
variants digit1 0.1 "$f" "938 261 928 262 741 203"
variants digit1 1 "$f" "94.3 27.3 70.9 19.4 60.7 16.8"
variants digit1 10 "$f" "6.93 2.71 2.92 0.77 2.45 0.794"
f=$multiclass/satimage.libsvm.gz
variants satimage 0.1 "$f" "1365 565 1325 547 1178 488" --positive 1 --scale standard
variants satimage 1 "$f" "635 218 392 129 277 88.7" --positive 1 --scale standard
variants satimage 10 "$f" "31 20.4 3.89 1.5 3.87 1.68" --positive 1 --scale standard
f=$mushrooms
variants mushrooms 0.1 "$f" "1938 618 1838 572 1395 423"
variants mushrooms 1 "$f" "239 103 164 62.3 134 50.6"
variants mushrooms 10 "$f" "94.3 56.3 70.5 44.2 66.2 40.9"
variants shuttle 0.1 "$shuttle" "278232 63192 275688 63608 253219 51932" --positive 1 --scale standard
variants shuttle 1 "$shuttle" "214165 60608 203155 56161 180839 48867" --positive 1 --scale standard
variants shuttle 10 "$shuttle" "167690 54364 129490 45644 125675 44463" --positive 1 --scale standard

section "Figure 4: screening rate at C = 10 over C_ref / C, gamma = 1/d"
say "| data | C_ref / C | BT1 | BT2 | IT |"
say "|---|---|---|---|---|"
rbf="--kernel rbf --gamma 1/d"
near bcd "$binary/breast_cancer.libsvm.gz" $rbf --scale standard
near dna "$multiclass/dna.libsvm.gz" $rbf --positive 3
near satimage "$multiclass/satimage.libsvm.gz" $rbf --positive 1 --scale standard

section "Figure 5: screening rate over C, grid of $grid points up to C = $cmax"
over() { # set, file, options
    whose=$1 file=$2
    shift 2
    for multiple in $gammas; do
        figure "$whose-$multiple" svm "$file" bt1,bt2,it screening_rate --kernel rbf --gamma "$multiple/d" --cmin 0.001 \
            --cmax "$cmax" --grid "$grid" "$@"
    done
}
over dna "$multiclass/dna.libsvm.gz" --positive 3
over satimage "$multiclass/satimage.libsvm.gz" --positive 1 --scale standard
over mushrooms "$mushrooms"
over shuttle "$shuttle" --positive 1 --scale standard
echo "written: $page"
