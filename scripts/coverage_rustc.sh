#!/usr/bin/env bash
# A wrapper of rustc for `make fuzz-guided`. It compiles the core with counters for the edges of its control flow. The
# tests and all dependencies are compiled without counters.
if [[ " $* " == *" --crate-name deltalog "* ]]; then
    set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
fi
exec "$@"
