#!/bin/sh
# Downloads Delta, for the tests with Delta tables: `sh scripts/delta.sh FOLDER` fills FOLDER with jars and installs the
# Python package beside it. Delta 4.3 runs on Spark 4.1. Where that is not possible it says so, and those tests are skipped.
set -u
delta=4.3.1
target=${1:?"usage: delta.sh FOLDER"}
if [ "$(cat "$target/ready" 2>/dev/null)" = "$delta" ]; then exit 0; fi
rm -rf "$target"
. "$(dirname "$0")/maven.sh"
require_maven Delta

mkdir -p "$target"
folder=$(cd "$target" && pwd)
python=$(dirname "$target")/bin/python
if fetch "$folder" '*' io.delta:delta-spark_2.13:$delta io.delta:delta-storage:$delta &&
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps delta-spark==$delta; then
    printf '%s' "$delta" >"$folder/ready"
else
    echo "Delta could not be downloaded: the tests with Delta tables will be skipped."
fi
exit 0
