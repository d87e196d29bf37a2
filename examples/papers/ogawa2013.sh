#!/bin/sh
# Table 1 and the data of Figs. 5-8 of Ogawa et al. 2013 (pathwise SSNSV): one dome rule for five values of C, against
# the naive path and the heuristic screening that guesses, checks and repeats.
#
#     examples/papers/ogawa2013.sh [DATA_FOLDER] [OUTPUT_FOLDER]
#
# 100 values of C in [0.01, 100] as the paper, which saved 65, 36, 32 and 41 % of the naive path's time with its rule
# (ratios 2.86, 1.56, 1.47, 1.69). The paper's fourth set is not named here: magic04, ijcnn1 stand beside B.C.D., PCMAC.
set -eu
out=${2:-}
. "$(dirname "$0")/common.sh"
begin ogawa2013 "Ogawa et al. 2013: Safe screening of non-support vectors in pathwise SVM computation"
binary=$data/binary
plain="--solver cd --cmin 0.01 --cmax 100 --max-epochs 5000"

# set, file, options; Fig. 4's toy first
sets() { # function and its arguments behind the file
    for set_ in toy bcd pcmac magic04 ijcnn1; do
        case $set_ in
        toy) "$@" toy "$toy" ;;
        bcd) "$@" bcd "$binary/breast_cancer.libsvm.gz" --scale standard ;;
        pcmac) "$@" pcmac "$binary/pcmac.libsvm.gz" --scale maxabs ;;
        magic04) "$@" magic04 "$binary/magic04.libsvm.gz" --scale standard ;;
        ijcnn1) "$@" ijcnn1 "$binary/ijcnn1.libsvm.gz" ;;
        esac
    done
}

toy=$out/toy.libsvm
[ -f "$toy" ] || $tool generate ogawa-toy --seed 0 -o "$toy"

table() { # chunk form, set, file, options
    form=$1 set_=$2 file=$3
    shift 3
    study "$set_" svm "$file" none,heuristic,ssnsv,essnsv "" $plain --shrinking off --chunk 5 --chunk-form "$form" "$@"
}

for form in C s; do
    section "Table 1: one rule for five values of C ($form-form)" "Coordinate descent without shrinking. Published savings of the rule: 65, 36, 32 and 41 % of the naive path's time on the four sets, that is ratios of 2.9, 1.6, 1.5 and 1.7; its heuristic was slower than the rule on three of them."
    $python "$here/tables.py" header | tee -a "$page"
    sets table $form
done

curve() { # set, file, options
    set_=$1 file=$2
    shift 2
    figure "$set_" svm "$file" ssnsv,essnsv rejection_ratio --cmin 0.01 --cmax 100 --grid "$grid" --chunk 5 "$@"
}
section "Figures 5-8: share of screened samples over C, one rule for five values"
sets curve
echo "written: $page"
