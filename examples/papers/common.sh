# What wang2014.sh, ogawa2013.sh and ogawa2014_linear.sh share; sourced by them, not run. They print Markdown.
#
#     PAPER.sh [DATA_FOLDER] [OUTPUT_FOLDER] > PAPER.md
#
# DATA_FOLDER (default: $SCREENPATH_DATA, or ../shared/data) holds binary/, regression/ and multiclass/; a set that is not
# there is left out with a line that says so. OUTPUT_FOLDER keeps every table as JSON and every curve as CSV.
# POINTS=20 shortens the grids, REPEATS=3 repeats each comparison, SETS="toy1 ijcnn1" runs only these, LIMIT=300 ends a
# comparison after so many seconds, QUICK=1 takes only what comes with the program, on short grids.
data=${1:-${SCREENPATH_DATA:-../shared/data}}
out=${2:-runs/$paper}
tool=${SCREENPATH:-screenpath}
python=${PYTHON:-python3}
samples=$here/../../data_samples
points=${POINTS:-100} repeats=${REPEATS:-1} limit=${LIMIT:-600}
if [ -n "${QUICK:-}" ]; then
    points=${POINTS:-10} data=/nonexistent
fi
mkdir -p "$out"
: >"$out/notes.md"

note() { # text; notes follow the tables
    echo "- $1" >>"$out/notes.md"
    echo "$1" >&2
}

found() { # set, its file in the data folder: sets $file if the set is wanted and there
    case " ${SETS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
    for file in "$data/$2" "$samples/$(basename "$2")" "$samples/$(basename "$2" .gz)"; do
        [ -f "$file" ] && return 0
    done
    note "$1: left out, $2 is not in the data folder"
    return 1
}

compare() { # set, published speed-ups (RULE=NUMBER,...), solvers, model, file, options of screenpath compare
    set_=$1 published=$2 solvers=$3 model=$4 file_=$5
    shift 5
    for solver in $solvers; do
        shrinking=on
        [ "$solver" = cd ] && shrinking=both
        json=$out/$set_-$solver${label:+-$(echo "$label" | tr ' ,=' '---')}.json status=0
        echo "$set_ $solver ${label:-}" >&2
        timeout "$limit" $tool compare "$model" "$file_" --solver "$solver" --shrinking "$shrinking" \
            --repeats "$repeats" --format json --out "$json" --quiet "$@" || status=$?
        case $status in
        0 | 3) $python "$here/tables.py" speedups "$json" --set "$set_" --solver "$solver" --label "${label:-}" --published "$published" ${single:+--single} ;;
        124) note "$set_, solver $solver${label:+, $label}: left out, not done after $limit s" ;;
        *) exit "$status" ;;
        esac
    done
}

curves() { # set, column of the step table, rules, model, file, options: that column along the path under each rule
    set_=$1 column=$2 rules=$3 model=$4 file_=$5
    shift 5
    echo "$set_ $column" >&2
    for rule in $rules; do
        $tool "$model" "$file_" --rule "$rule" --coefficients none --quiet --force --out "$out/curves/$set_/$rule" "$@"
    done
    $python "$here/tables.py" curves "$out/curves/$set_" --set "$set_" --column "$column" --rules "$rules" \
        --csv "$out/$set_-$column.csv"
}

heading() { # text
    printf '\n## %s\n\n' "$1"
}

closing() { # after the last table
    if [ -s "$out/notes.md" ]; then
        heading "Left out"
        awk '!seen[$0]++' "$out/notes.md"
    fi
}
