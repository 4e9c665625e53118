#!/usr/bin/env bash
# Runs make targets one after another and stops at the first one that fails. At the end it prints the slowest tests,
# and for each target how long it took and how many tests passed. The output of each target is kept in .cache/stages/.
#
#   scripts/stages.sh TARGET...
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs=.cache/stages
mkdir -p "$logs"

# Adds up the summary lines of pytest and cargo test in a log, and prints the sum: "532 passed, 2 skipped".
counts() { # counts LOG
    awk '
        /^test result: / { passed += $4; failed += $6; skipped += $8 }
        /^=+ .*[0-9]+ (passed|failed|skipped|error).* in [0-9.]+s/ || /^[0-9]+ (passed|failed).* in [0-9.]+s/ {
            for (i = 2; i <= NF; i++) {
                word = $i; sub(/,$/, "", word)
                if (word == "passed") passed += $(i - 1)
                if (word == "failed" || word ~ /^errors?$/) failed += $(i - 1)
                if (word == "skipped" || word == "xfailed") skipped += $(i - 1)
            }
        }
        END {
            if (passed + failed + skipped == 0) exit
            printf "%d passed", passed
            if (failed) printf ", %d failed", failed
            if (skipped) printf ", %d skipped", skipped
        }' "$1"
}

# Prints the slowest tests of pytest with their durations, and the tests of cargo test that take more than a minute.
slowest() { # slowest LOG...
    awk '
        FNR == 1 { spark = "" }
        /^== Spark / { spark = "Spark " $3 }
        /^[0-9.]+s (call|setup|teardown) / {
            seconds = $1; sub(/s$/, "", seconds); what = $2; $1 = $2 = ""; sub(/^ +/, "")
            printf "%8.1f s  %-8s %s", seconds, what, $0
            print $0 ~ /^tests\/spark/ && spark ? "  (" spark ")" : ""
        }
        /^test .* has been running for over 60 seconds$/ { printf "%8.1f s  or more  %s\n", 60, $2 }
    ' "$@" | sort -rn | head -n 25
}

summary=()
logs_of_run=()
code=0
for target in "$@"; do
    log=$logs/${target//\//_}.log
    logs_of_run+=("$log")
    start=$SECONDS
    printf '\n== %s\n' "$target"
    "${MAKE:-make}" --no-print-directory "$target" 2>&1 | tee "$log" || code=$?
    # shellcheck disable=SC2310
    summary+=("$(printf '%-24s %5d s   %s' "$target" $((SECONDS - start)) "$(counts "$log")")")
    if ((code)); then
        summary[-1]+="   FAILED"
        break
    fi
done

slow=$(slowest "${logs_of_run[@]}")
if [[ -n $slow ]]; then
    printf '\n== slow tests\n%s\n' "$slow"
fi
printf '\n== what ran\n'
printf '%s\n' "${summary[@]}"
printf '%-24s %5d s   %s\n' "in all" "$SECONDS" "$( ((code == 0)) && echo "all stages passed" || echo "exit $code")"
exit "$code"
