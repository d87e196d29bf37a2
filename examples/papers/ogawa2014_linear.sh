#!/bin/sh
# Ogawa et al. 2014, linear part: Fig. 1 (a toy problem), Table III (single problems), Table IV's linear rows (eps-path
# to C = 1e4), the data of Figs. 4 and 5 (screening rates), and Fig. 6: the intersection test against the dome test.
#
#     examples/papers/ogawa2014_linear.sh [DATA_FOLDER] [OUTPUT_FOLDER]
#
# The paper's sets of Table III (acoustic, url, kdd) are replaced by the larger ones of the data folder.
# EPS: accuracy of the eps-path (default 1e-3); CMAX: its end (default 1e4). POINTS: reference values of Fig. 4.
set -eu
out=${2:-}
. "$(dirname "$0")/common.sh"
begin ogawa2014_linear "Ogawa et al. 2014: Safe sample screening for support vector machines (linear kernel)"
binary=$data/binary multiclass=$data/multiclass eps=${EPS:-1e-3} cmax=${CMAX:-1e4}

least() { # set, file, options: C_min, below which the solution is known in closed form (Lemma 9)
    set_=$1 file=$2
    shift 2
    $tool svm "$file" --c-list 1e-300 --coefficients none --quiet --force --out "$out/$set_/least" "$@"
    sed -n 's/.*"closed_form_until": \([^,]*\),.*/\1/p' "$out/$set_/least/run.json"
}

toy=$out/toy.libsvm
[ -f "$toy" ] || $tool generate ogawa2014-toy --seed 0 -o "$toy"

section "Figure 1: the toy at C = 10, screened from C_ref = 5"
if there toy "$toy"; then
    for rule in bt1 bt2 it; do
        single toy "$toy" $rule 5 10
        say "- $rule: $(value screened_R 1 "$steps") of $(value n_R 1 "$steps") in R, $(value screened_L 1 "$steps") of $(value n_L 1 "$steps") in L screened"
    done
fi

section "Table III: one problem at C = C_ref / 0.9 with C_ref = 500 C_min" "Screening rates. Published: BT1 0.178, 0.108, 0.136, 0.138 and IT 0.51, 0.125, 0.136, 0.139 on acoustic, url, kdd-a, kdd-b."
say "| data | C | BT1 | BT2 | IT |"
say "|---|---|---|---|---|"
one() { # set, file, options
    there "$1" "$2" || return 0
    from=$(product 500 "$(least "$@")") set_=$1 file=$2
    shift 2
    to=$(product "$from" 1.11111111111)
    say "| $set_ | $to |$(rates "$set_" "$file" "$from" "$to" "$@")"
}
one toy "$toy"
one ijcnn1 "$binary/ijcnn1.libsvm.gz"
one w8a "$binary/w8a.libsvm.gz"
one covtype "$binary/covtype20k.libsvm.gz" --scale maxabs
one rcv1 "$binary/rcv1sub.binary.libsvm.gz"

section "Table IV, linear kernel: eps-path ($eps) up to C = $cmax" "Coordinate descent to a relative gap of ${TOL:-1e-4}. The six variants; none is Full, none+shrinking is Shrink. Published ratios to Full and, for variants with shrinking, to Shrink."
$python "$here/tables.py" header | tee -a "$page"
points=
variants() { # set, file, published, options
    set_=$1 file=$2 published=$3
    shift 3
    study "$set_" svm "$file" none,bt1,it "$published" --solver cd --shrinking both --max-epochs 20000 --tol "${TOL:-1e-4}" \
        --eps-path "$eps" --cmin 0.001 --cmax "$cmax" "$@"
}
variants toy "$toy" ""
variants bcd "$binary/breast_cancer.libsvm.gz" "bt1=2.24 it=2.20 bt1+shrinking=1.01 it+shrinking=1.01" --scale standard
variants dna "$multiclass/dna.libsvm.gz" "bt1=4.93 it=5.00 bt1+shrinking=1.13 it+shrinking=1.12" --positive 3
variants digit1 "$binary/digit1.libsvm.gz" "bt1=1.67 it=2.21 bt1+shrinking=1.05 it+shrinking=1.04"
variants mushrooms "$binary/mushrooms.libsvm.gz" "bt1=2.44 it=2.31 bt1+shrinking=1.27 it+shrinking=1.30"

section "Figure 4: screening rate at C = 10 over C_ref / C"
say "| data | C_ref / C | BT1 | BT2 | IT |"
say "|---|---|---|---|---|"
near toy "$toy"
near bcd "$binary/breast_cancer.libsvm.gz" --scale standard
near dna "$multiclass/dna.libsvm.gz" --positive 3
near digit1 "$binary/digit1.libsvm.gz"
near satimage "$multiclass/satimage.libsvm.gz" --positive 1 --scale standard

section "Figure 5: screening rate over C, grid of $grid points up to C = $cmax"
path="--cmin 0.001 --cmax $cmax --grid $grid"
figure toy svm "$toy" bt1,bt2,it screening_rate $path
figure bcd svm "$binary/breast_cancer.libsvm.gz" bt1,bt2,it screening_rate $path --scale standard
figure mushrooms svm "$binary/mushrooms.libsvm.gz" bt1,bt2,it screening_rate $path
figure shuttle svm "$multiclass/shuttle.libsvm.gz" bt1,bt2,it screening_rate $path --positive 1 --scale standard

section "Figure 6: intersection test (IT) and dome test (DT) from C_ref = 1e4 C_min" "DT is given the solution at 1.3 C as its feasible point, as in the paper."
say "| data | C_ref / C | IT | DT | IT rejects |"
say "|---|---|---|---|---|"
domes() { # set, file, options
    set_=$1 file=$2
    shift 2
    there "$set_" "$file" || return 0
    from=$(product 1e4 "$(least "$set_" "$file" "$@")")
    for share in 0.5 0.6 0.7 0.8 0.9 0.95; do
        to=$(awk -v a="$from" -v s="$share" 'BEGIN { printf "%.10g\n", a / s }')
        single "$set_" "$file" it "$from" "$to" "$@"
        it=$(value screening_rate 1 "$steps")
        # the grid ends at 1.3 C, where the rule takes its feasible point
        $tool svm "$file" --rule ssnsv --c-list "$from,$to,$(product "$to" 1.3)" --coefficients none --quiet --force \
            --out "$out/$set_/dome" "$@" || [ $? -eq 3 ]
        dt=$(value screening_rate 1 "$out/$set_/dome/steps.csv")
        say "| $set_ | $share | $(printf '%.3f' "$it") | $(printf '%.3f' "$dt") | $(awk -v a="$it" -v b="$dt" 'BEGIN { print (a > b ? "more" : a < b ? "less" : "the same") }') |"
    done
}
domes toy "$toy"
domes bcd "$binary/breast_cancer.libsvm.gz" --scale standard
domes pcmac "$binary/pcmac.libsvm.gz" --scale maxabs
domes magic04 "$binary/magic04.libsvm.gz" --scale standard
domes ijcnn1 "$binary/ijcnn1.libsvm.gz"
echo "written: $page"
