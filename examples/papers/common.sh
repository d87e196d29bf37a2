# Read by the scripts of this folder: where things are, and the steps that their studies share.
#
# DATA_FOLDER (default ../shared/data) holds binary/, multiclass/ and regression/ with the LIBSVM files; sets that are
# not there are left out, saying so. Every script writes OUTPUT_FOLDER/NAME.md and the figures' data as CSV beside it.
# GRID, REPEATS: points of the paths and runs of each variant. SETS="toy1 wine" runs only these.
here=$(cd "$(dirname "$0")" && pwd)
data=${1:-${SCREENPATH_DATA:-../shared/data}}
tool=${SCREENPATH:-screenpath} python=${PYTHON:-python3}
grid=${GRID:-100} repeats=${REPEATS:-3}
points="--grid $grid" # of a study; empty where its options choose the points

begin() { # name, title
    out=${out:-runs/$1} page=$out/$1.md
    mkdir -p "$out"
    printf '# %s\n\n' "$2" >"$page"
    $python "$here/tables.py" about "$tool" >>"$page"
}

say() { # a line of the page, shown as well
    printf '%s\n' "$*" | tee -a "$page"
}

section() { # title, text
    say ""
    say "## $1"
    say ""
    [ -z "${2:-}" ] || { say "$2" && say ""; }
}

there() { # set, file
    case " ${SETS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
    [ -f "$2" ] && return 0
    echo "$1: left out, $2 is not there"
    return 1
}

# One set under several rules. Exit code 3 (a point is not certified) is no reason to stop: the table says so.
study() { # set, model, file, rules, published ratios "VARIANT=RATIO ...", options
    set_=$1 model=$2 file=$3 rules=$4 published=$5
    shift 5
    there "$set_" "$file" || return 0
    name=$(echo "$set_ $*" | tr -cs 'a-zA-Z0-9.\n' '-')
    $tool compare-rules "$model" "$file" --rules "$rules" $points --repeats "$repeats" --format json --quiet \
        -o "$out/$name.json" --force "$@" || [ $? -eq 3 ]
    $python "$here/tables.py" rows "$set_" "$out/$name.json" $published | tee -a "$page"
}

# The figures' data: one column of the step table over C, for several rules. The papers' references are taken as exact;
# here they are solved to 1e-8, and every rule pays for the rest.
figure() { # set, model, file, rules, column, options
    set_=$1 model=$2 file=$3 rules=$4 column=$5
    shift 5
    there "$set_" "$file" || return 0
    runs=
    for rule in $(echo "$rules" | tr , ' '); do
        $tool "$model" "$file" --rule "$rule" --tol "${TOL:-1e-8}" --coefficients none --quiet --force \
            --out "$out/$set_/$rule" "$@" || [ $? -eq 3 ]
        runs="$runs $rule=$out/$set_/$rule/steps.csv"
    done
    say "- $set_ ($column over C in $set_-$column.csv): mean $($python "$here/tables.py" curves "$column" "$out/$set_-$column.csv" $runs)"
}

value() { # column, step, steps.csv
    awk -F, -v name="$1" -v step="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } $1 == step { print $at }' "$3"
}

product() { # numbers to multiply
    awk 'BEGIN { x = 1; for (i = 1; i < ARGC; i++) x *= ARGV[i]; printf "%.10g\n", x }' "$@"
}

single() { # set, file, rule, reference, C, options: screen once, from one reference
    set_=$1 file=$2 rule=$3 from=$4 to=$5
    shift 5
    $tool svm "$file" --rule "$rule" --reference "$from" --c "$to" --coefficients none --quiet --force \
        --out "$out/$set_/single-$rule" "$@" || [ $? -eq 3 ]
    steps=$out/$set_/single-$rule/steps.csv
}

rates() { # set, file, reference, C, options: screening rates of three rules, as cells of a table
    whose=$1 which=$2 first=$3 last=$4 cells=
    shift 4
    for rule in bt1 bt2 it; do
        single "$whose" "$which" $rule "$first" "$last" "$@"
        cells="$cells $(printf '%.3f' "$(value screening_rate 1 "$steps")") |"
    done
    echo "$cells"
}

near() { # set, file, options: screening rates at C = 10 from references nearer and nearer (Ogawa 2014, Fig. 4)
    set_=$1 file=$2
    shift 2
    there "$set_" "$file" || return 0
    for share in ${POINTS:-0.5 0.7 0.8 0.9 0.95 0.99}; do
        say "| $set_ | $share |$(rates "$set_" "$file" "$(product 10 "$share")" 10 "$@")"
    done
}
