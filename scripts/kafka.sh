#!/bin/sh
# Downloads a Kafka broker and Spark's Kafka connector with Maven, for the tests that read from a real broker:
# `sh scripts/kafka.sh FOLDER` fills FOLDER/broker and FOLDER/connector with jars.
# Where that is not possible it says so, and those tests are skipped.
set -u
broker=org.apache.kafka:kafka_2.13:4.1.2
# The connector of Spark 4.2 runs on all versions of Spark 4; with PySpark come Scala and what else it needs.
connector="org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0
    org.apache.kafka:kafka-clients:3.9.2 org.apache.commons:commons-pool2:2.12.0"
wanted="$broker $connector"
target=${1:?"usage: kafka.sh FOLDER"}
if [ "$(cat "$target/ready" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
rm -rf "$target"
. "$(dirname "$0")/maven.sh"
require_maven Kafka

mkdir -p "$target"
folder=$(cd "$target" && pwd)
echo "Downloading a Kafka broker and Spark's Kafka connector into $target …"
# shellcheck disable=SC2086
if fetch "$folder/broker" '' $broker && fetch "$folder/connector" '*' $connector; then
    printf '%s' "$wanted" >"$folder/ready"
else
    echo "Maven could not download them: the tests with Kafka will be skipped."
fi
exit 0
