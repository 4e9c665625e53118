#!/usr/bin/env bash
# A wrapper of rustc that lets the core count which edges of its control flow run, for `make fuzz-guided`. The tests and
# all dependencies are compiled as always.
if [[ " $* " == *" --crate-name deltalog "* ]]; then
    set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
fi
exec "$@"
