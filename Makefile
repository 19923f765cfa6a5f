# A virtual environment with locked dependencies is made on first use, with a Java runtime in it if there is none.
# Nothing is installed system-wide but by `make java` and `make browser`.
PYTHON ?= python3
TEXTS  ?= 100000
# `make soak SOAK="--minutes 60 --seed 7"`: python -m tests.soak --help lists the options.
SOAK   ?= --minutes 10
# `make test SPARK=4.2` runs the tests on the newest Spark 4.2, in a virtual environment of its own.
SPARK  ?=
VENV   := .venv$(if $(SPARK),-$(SPARK))
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CODE   := src tests benchmarks examples scripts
PYTEST  = $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
ifndef JAVA_HOME
export JAVA_HOME = $(shell [ ! -e $(VENV)/java/runtime ] || echo $(abspath $(VENV)/java/runtime))
endif

.PHONY: hadoop demo test test-all check fast spark lint types imports scan audit setup java browser kafka delta lock wheel clean \
        bench-overhead bench-kafka bench-control-row bench-freshness bench-disorder bench-windows bench-equality bench-queries bench-shedding bench-standing bench-page bench-load docs plots notebook page-pictures demo-screen fuzz soak

demo: setup          ## a real Spark query keeps DRATIO 1% next to two guesses (three minutes)
	@$(BIN)/slackwater demo

test: setup check    ## what a change must pass: style, types, imports, and all tests but those of test-all
	@$(PYTEST) -m "not full"

test-all: setup check browser hadoop kafka  ## every test: also kills, clusters, HDFS, S3, Kafka, the browser, the wheel, the examples, the docs, the longest queries
	@$(PYTEST)

fast: $(READY)       ## the tests that need no JVM
	@$(PYTEST) -m "not spark and not full"

spark: setup         ## the tests on real Spark
	@$(PYTEST) -m "spark and not full"

fuzz: $(READY)       ## a hundred thousand query texts, thousands of damaged files and hostile requests (make fuzz TEXTS=1000000 for more)
	@SLACKWATER_FUZZ=$(TEXTS) $(PYTEST) tests/fuzz

soak: setup          ## ten minutes of random kills, pauses and damaged files while promises are kept (make soak SOAK="--minutes 60 --seed 7")
	@$(BIN)/python -m tests.soak $(SOAK)

# The code is checked against the locked versions only.
check: $(if $(SPARK),,lint types imports scan)  ## style, types, direction of imports, secrets and dependencies

lint: $(READY)
	@$(BIN)/ruff check --quiet $(CODE) && $(BIN)/ruff format --quiet --check $(CODE)

types: $(READY)
	@$(BIN)/mypy --no-error-summary

imports: $(READY)
	@$(BIN)/lint-imports --no-logo

scan: $(READY)
	@$(BIN)/python scripts/scan.py

audit: $(READY)      ## look up known vulnerabilities of the locked dependencies; needs the network
	@$(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet pip-audit
	@.venv-audit/bin/pip-audit --require-hashes --disable-pip -r requirements.lock

setup: $(READY)
	@sh scripts/java.sh $(VENV)/java

java:                ## install a Java runtime from this system's packages
	@sh scripts/java.sh install

browser:             ## install Chromium and its driver from this system's packages, for the tests of the live page
	@sh scripts/browser.sh

kafka: $(READY)      ## download a Kafka broker and Spark's Kafka connector, for the tests with Kafka
	@sh scripts/kafka.sh $(VENV)/kafka

delta: $(READY)      ## download Delta, for the tests with Delta tables; it needs `SPARK=4.1`
	@sh scripts/delta.sh $(VENV)/delta

hadoop: $(READY)     ## download HDFS, Spark's S3 connector and an S3 server, for the tests with checkpoints there
	@sh scripts/hadoop.sh $(VENV)/hadoop

docs: $(READY)       ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "docs: site/index.html"

demo-screen: setup   ## run the demo and show its last screen in README.md and docs/start.md
	@$(BIN)/python scripts/demo_screen.py

notebook: setup      ## run the notebook in examples/ and store its outputs
	@$(BIN)/python scripts/notebook.py

page-pictures: setup browser  ## run the demo and take the pictures of the live page
	@$(BIN)/python scripts/page_pictures.py

plots: $(READY)      ## draw the pictures of methods, laws and the heartbeat again
	@$(BIN)/python scripts/plots.py
	@$(BIN)/python scripts/heartbeat_plots.py

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Slackwater needs Python 3.11 or newer; $(PYTHON) is {v.major}.{v.minor}. Try: make PYTHON=python3.12 …")'
	@echo "Setting up $(VENV) (a minute or two, once) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(if $(SPARK),$(BIN)/pip install --quiet --disable-pip-version-check "pyspark==$(SPARK).*")
	@touch $@

lock:                ## pin the newest dependencies
	@$(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv
	@.venv-lock/bin/uv pip compile pyproject.toml --extra dev --extra docs --universal --generate-hashes --quiet \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" -o requirements.lock

wheel: $(READY)      ## build dist/*.whl
	@$(BIN)/python -m build --wheel --no-isolation

bench-overhead: setup  ## what the one-line promise costs
	@$(BIN)/python benchmarks/overhead.py

bench-kafka: setup kafka  ## the same over a Kafka topic, at 10 000 and 750 000 rows a micro-batch, and the demo's readings live
	@PYTHONPATH=. $(BIN)/python benchmarks/overhead.py --sources kafka --rows 10000 --rounds 20
	@PYTHONPATH=. $(BIN)/python benchmarks/overhead.py --sources kafka --rows 750000 --rounds 8 --warm-up 3
	@PYTHONPATH=. $(BIN)/python benchmarks/kafka_demo.py

bench-control-row: setup  ## what the control row costs per micro-batch, from a file and from the driver
	@$(BIN)/python benchmarks/control_row.py

bench-freshness: setup  ## the promise against plain Spark with the best constant delay, on live streams (some hours)
	@$(BIN)/python benchmarks/freshness.py --keep bench-results/freshness.jsonl --together 3 --rates 1000 --ratios 5%,1%,0.1% --seconds 600
	@$(BIN)/python benchmarks/freshness.py --keep bench-results/freshness.jsonl --rates 10000,50000 --traces none --ratios 5%,1%
	@$(BIN)/python benchmarks/freshness.py --keep bench-results/freshness.jsonl --rates 10000,50000 --traces none --ratios 0.1% --seconds 600

bench-standing: setup  ## a million standing aggregates: deferred against naive
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/standing.py
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/standing_spark.py

bench-windows: setup  ## sliding windows with panes against plain Spark, and the window operator alone
	@$(BIN)/python benchmarks/windows.py --queries plain-60 panes-60 --rows 4000000 --batches 1 --warm-up 5 --rounds 4
	@$(BIN)/python benchmarks/windows.py --queries panes-1 panes-6 panes-60 panes-600 --rows 16000000 --batches 2 --warm-up 4
	@$(BIN)/python benchmarks/windows.py --queries panes-1 panes-6 panes-60 panes-600 --keys 2000 --warm-up 4 --rounds 6
	@$(BIN)/python benchmarks/windows.py --queries panes-60 per-row
	@$(BIN)/python benchmarks/windows.py --queries panes-60 per-row --source json --warm-up 4 --rounds 6
	@$(BIN)/python benchmarks/windows.py --queries panes-60 per-row --source parquet --warm-up 4 --rounds 6
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kernel.py

bench-equality: setup  ## streaming results against plain Spark's batch, query by query (ten minutes)
	@$(BIN)/python benchmarks/equality.py

bench-queries: setup  ## the papers' queries, printed, planned, run and held against their batch
	@$(BIN)/python benchmarks/papers_queries.py

bench-disorder: setup  ## every method on every trace with two clocks (some minutes)
	@$(BIN)/python benchmarks/disorder.py

bench-page: setup browser  ## what the live page weighs, and what its server costs with 50 queries
	@$(BIN)/python benchmarks/page.py

bench-shedding: setup  ## overload a query on Spark, law by law
	@$(BIN)/python benchmarks/shedding.py

bench-load: setup    ## half a day's stream at saturation, 10 000 sources, a million keys, micro-batches of one row (half an hour)
	@mkdir -p bench-results
	@$(BIN)/python benchmarks/load.py day --batches 720 --json bench-results/load-day.json
	@$(BIN)/python benchmarks/load.py sources --json bench-results/load-sources.json
	@$(BIN)/python benchmarks/load.py keys --rows 1000000 --warm-up 4 --batches 6 --json bench-results/load-keys.json
	@$(BIN)/python benchmarks/load.py one --json bench-results/load-one.json
	@$(BIN)/python benchmarks/load_plot.py bench-results/load-day.json docs/images/load-day.png

clean:
	rm -rf .venv .venv-* dist .pytest_cache .mypy_cache .ruff_cache
