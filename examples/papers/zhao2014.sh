#!/bin/sh
# Tables 2-4 and the data of Fig. 2 of Zhao, Liu, Cox 2014 (L1-regularised squared hinge with a free bias):
# seven configurations of coordinate descent over lambda_max / k, k = 1..20, and the tool's default beside them.
#
#     examples/papers/zhao2014.sh DATA_FOLDER [OUTPUT_FOLDER]
#
# DATA_FOLDER holds binary/ and multiclass/ with the LIBSVM files. Every set stands in for one of the paper, whose
# ratio of run times (org over warm_scr) is printed beside the one measured here.
set -eu
data=${1:?usage: zhao2014.sh DATA_FOLDER [OUTPUT_FOLDER]}
out=${2:-runs/zhao2014}
tool=${SCREENPATH:-screenpath}
mkdir -p "$out"

study() { # name, file, for which set of the paper, published ratio, options
    name=$1 file=$2 paper=$3 published=$4
    shift 4
    if [ ! -f "$file" ]; then
        echo "$name: left out, $file is not there"
        return
    fi
    $tool compare-rules l1svm "$file" "$@" >"$out/$name.csv"
    echo "== $name (for $paper)"
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        NR == 2 { printf "%-10s %11s %8s %11s %10s %9s %10s\n", "", "run time s", "speed-up", "iterations", "screen s", "ratio", "over hits" }
        {
            printf "%-10s %11.3f %8.1f %11d %10.4f %9.4f %10d\n", $1, $at["run_s"], $at["speedup"], $at["iterations"],
                $at["screen_s"], $at["screen_ratio"], $at["over_hits"]
            if ($1 == "warm+scr") measured = $at["speedup"]
            if ($1 == "default") default_ = $at["speedup"]
        }
        END { printf "org / warm+scr: %.1f here, '"$published"' published; org / default: %.1f\n", measured, default_ }
    ' "$out/$name.csv"
}

study chowdary "$data/binary/chowdary.libsvm.gz" gli_85 445
study rcv1sub.binary "$data/binary/rcv1sub.binary.libsvm.gz" rcv1b 10
study pcmac "$data/binary/pcmac.libsvm.gz" real-sim 5
study news20 "$data/multiclass/news20.libsvm.gz" news20b 53 --positive 1

# Fig. 2: run time, iterations and over hits of each step (the paper shows the configurations without org and warm).
if [ -f "$data/multiclass/news20.libsvm.gz" ]; then
    $tool compare-rules l1svm "$data/multiclass/news20.libsvm.gz" --positive 1 --steps \
        --configurations shr,warm+shr,scr,warm+scr,scr+shr >"$out/figure2_news20.csv"
    echo "Fig. 2's data: $out/figure2_news20.csv"
fi
