#!/usr/bin/env bash
# Checks the tools that the Makefile cannot install itself: a C compiler, Rust, Python and Java. If some are missing,
# it names all of them, with the commands that install them, and fails.
#
# `prerequisites.sh servers` checks Go and Node instead: only the object-store servers of the tests need them.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
javac=${java}c
missing=0

need() { # need WHAT HOW-TO-INSTALL
    printf 'missing: %s\n    install: %s\n' "$1" "$2" >&2
    missing=1
}

# at_least HAVE WANT: dotted numbers
at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

# hint DEBIAN-PACKAGES BREW-FORMULA
hint() {
    if [[ $(uname -s) == Darwin ]]; then
        echo "brew install $2"
    else
        echo "apt-get install $1   (or your system's package of that name)"
    fi
}

if [[ ${1-} == servers ]]; then
    # Go 1.21 and newer download the Go release that a program requires.
    if ! command -v go >/dev/null; then
        need "Go 1.21 or newer, which builds object-store servers for the tests" "$(hint golang-go go)"
    else
        have=$(go env GOVERSION)
        at_least "${have#go}" 1.21 || need "Go 1.21 or newer (this is ${have#go})" "$(hint golang-go go)"
    fi
    if ! command -v node >/dev/null; then
        need "Node 20.6 or newer, which runs an object-store server of the tests" "$(hint nodejs node)"
    else
        have=$(node --version)
        at_least "${have#v}" 20.6 || need "Node 20.6 or newer (this is ${have#v})" "$(hint nodejs node)"
    fi
    command -v npm >/dev/null || need "npm, Node's packager" "$(hint npm node)"
    exit "$missing"
fi

command -v cc >/dev/null || need "a C compiler (cc), which links Rust" "$(hint build-essential gcc)"

# The tests need a newer Rust than the crates that are published.
want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/crates/testkit/Cargo.toml")
if ! command -v cargo >/dev/null; then
    need "cargo, Rust $want or newer" "rustup from rustup.rs, then: rustup default stable"
else
    have=$(cargo --version | cut -d ' ' -f 2)
    at_least "$have" "$want" || need "Rust $want or newer (this is $have)" "rustup update stable"
    cargo fmt --version >/dev/null 2>&1 || need "rustfmt" "rustup component add rustfmt"
    cargo clippy --version >/dev/null 2>&1 || need "clippy" "rustup component add clippy"
fi

if ! command -v "$python" >/dev/null; then
    need "Python 3.10 or newer ($python)" "$(hint 'python3 python3-venv' python)"
else
    have=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    at_least "$have" 3.10 || need "Python 3.10 or newer ($python is $have)" \
        "$(hint 'python3 python3-venv' python), or: make PYTHON=/path/to/python3.12"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || need "Python's venv module" "$(hint python3-venv python)"
fi

# Spark 4 runs on Java 17 and newer.
if ! command -v "$java" >/dev/null || ! have=$("$java" -version 2>&1); then
    need "Java 17 or newer ($java)" "$(hint openjdk-17-jdk-headless openjdk@17), or set JAVA_HOME"
else
    have=$(sed -n 's/.*version "\([0-9]*\).*/\1/p' <<<"$have")
    at_least "${have:-0}" 17 || need "Java 17 or newer ($java is ${have:-unknown})" \
        "$(hint openjdk-17-jdk-headless openjdk@17), or set JAVA_HOME"
fi

# A machine that can run Java does not always have the compiler.
if ! command -v "$javac" >/dev/null || ! have=$("$javac" -version 2>&1); then
    need "the compiler of a JDK 17 or newer ($javac)" "$(hint openjdk-17-jdk-headless openjdk@17), or set JAVA_HOME"
else
    have=$(sed -n 's/^javac \([0-9]*\).*/\1/p' <<<"$have")
    at_least "${have:-0}" 17 || need "the compiler of a JDK 17 or newer ($javac is ${have:-unknown})" \
        "$(hint openjdk-17-jdk-headless openjdk@17), or set JAVA_HOME"
fi

exit "$missing"
