#!/bin/sh
# Tables 1, 3, 4 and 6 and the data of Figs. 1-7 of Hong et al. 2019 (sparse SVMs, SIFS): proximal SDCA without
# screening, with ISS, with IFS, with SIFS and with the dynamic rule, and the tool's default beside them.
#
#     examples/papers/hong2019.sh [DATA_FOLDER] [OUTPUT_FOLDER]
#
# The synthetic sets are generated; real ones are taken from DATA_FOLDER/binary and DATA_FOLDER/multiclass, and left out
# where they are absent. STORAGE=dense repeats the paper's setting on its synthetic sets (80 MB to 800 MB each). Sizes
# that finish here: BETAS=3 ALPHAS=20 by default; the paper has BETAS=10 ALPHAS=100. SETS="syn1 rcv1" runs only these.
# The paper states neither its gamma (SMOOTHING, 0.5 by default) nor where its solver starts (STARTS): with "cold" every
# pair starts from theta = 0, screened or not; with "warm" from the previous pair.
#
# OUTPUT_FOLDER/SET/sifs/steps.csv is kept: scaling_ratio over (alpha, beta) is Figs. 1 and 5; iss_found and ifs_found,
# divided by n_R + n_L and by n_inactive_features, are the rejection ratios of each triggering (Figs. 2-4, 6, 7;
# FIRST=samples for ISS first).
set -eu
data=${1:-../shared/data}
out=${2:-runs/hong2019}
tool=${SCREENPATH:-screenpath}
betas=${BETAS:-3} alphas=${ALPHAS:-20} storage=${STORAGE:-auto} first=${FIRST:-features}
smoothing=${SMOOTHING:-0.5} starts=${STARTS:-warm,cold} rules=${RULES:-none,iss,ifs,sifs,gap} repeats=${REPEATS:-1}
mkdir -p "$out"

wanted() { # set
    case " ${SETS:-$1} " in *" $1 "*) return 0 ;; esac
    return 1
}

one() { # set, name of the run, file, options
    set_=$1 run=$2 file=$3
    shift 3
    $tool sparse-svm "$file" --storage "$storage" --first "$first" --coefficients none --quiet --force \
        --out "$out/$set_/$run" "$@"
    awk -F, -v run="$run" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            screen += $at["screen_s"]; solve += $at["solve_s"]; certify += $at["certify_s"]
            scaling += $at["scaling_ratio"]; certified += $at["status"] == "certified"
        }
        END {
            printf "%s %.4f %.4f %.4f %.4f %d/%d\n", run, screen, solve, certify, scaling / (NR - 1), certified, NR - 1
        }
    ' "$out/$set_/$run/steps.csv"
}

study() { # set, file, for which set of the paper, published speed-up
    wanted "$1" || return 0
    if [ ! -f "$2" ]; then
        echo "$1: left out, $2 is not there"
        return
    fi
    echo
    echo "$1 (for $3; published speed-up of SIFS: $4)"
    echo
    $tool compare-rules sparse-svm "$2" --rules "$rules" --starts "$starts" --solver sdca --storage "$storage" \
        --first "$first" --betas "$betas" --alphas "$alphas" --smoothing "$smoothing" --repeats "$repeats" --quiet
    echo
    echo "SIFS with SDCA, and the tool's default; seconds of screening, solving, certifying; scaling ratio; certified:"
    echo
    for run in sifs default; do
        options=$([ "$run" = sifs ] && echo "--rule sifs --solver sdca" || echo "")
        # shellcheck disable=SC2086 # the options are several words
        one "$1" "$run" "$2" $options --betas "$betas" --alphas "$alphas" --smoothing "$smoothing" | sed 's/^/    /'
    done
}

synthetic() { # set, name for generate, published speed-up
    wanted "$1" || return 0
    [ -f "$out/$1.libsvm" ] || $tool generate "$2" --seed 0 -o "$out/$1.libsvm"
    study "$1" "$out/$1.libsvm" "$2" "$3"
}

# Table 4: single pairs, reached through a path of references.
single() { # set, file
    wanted "$1" || return 0
    [ -f "$2" ] || return 0
    echo "== $1: single pairs (Table 4), seconds of SIFS through 10 references and of the unscreened solver"
    for share in 0.05 0.5; do
        grid=$($tool sparse-svm "$2" --betas 2 --beta-min-ratio "$share" --alphas 2 --alpha-min-ratio 0.1 --quiet -o - | tail -n 1)
        alpha=$(echo "$grid" | cut -d, -f2) beta=$(echo "$grid" | cut -d, -f3)
        one "$1" single-sifs "$2" --rule sifs --solver sdca --alpha "$alpha" --beta "$beta" --references 10 |
            awk -v share="$share" '{ printf "beta/beta_max %s, alpha/alpha_max 0.1: sifs %.3f\n", share, $2 + $3 + $4 }'
        one "$1" single-none "$2" --rule none --solver sdca --alpha "$alpha" --beta "$beta" |
            awk '{ printf "  none %.3f\n", $2 + $3 + $4 }'
    done
}

synthetic syn1 hong-syn1 34
synthetic syn2 hong-syn2 54
synthetic syn3 hong-syn3 77
study rcv1 "$data/binary/rcv1sub.binary.libsvm.gz" rcv1-train 277
study pcmac "$data/binary/pcmac.libsvm.gz" real-sim 195
single pcmac "$data/binary/pcmac.libsvm.gz"
synthetic syn-multi1 hong-syn-multi1 34
synthetic syn-multi2 hong-syn-multi2 37
synthetic syn-multi3 hong-syn-multi3 300
study news20 "$data/multiclass/news20.libsvm.gz" news20 197
study reuters_r8 "$data/multiclass/reuters_r8.libsvm.gz" rcv1-multiclass 96
