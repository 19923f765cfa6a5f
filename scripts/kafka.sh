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
has() { command -v "$1" >/dev/null 2>&1; }
if ! has mvn && has apt-get && [ "$(id -u)" -eq 0 ]; then
    echo "No Maven: installing it from this system's packages, for the tests with Kafka."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null
fi
if ! has mvn; then
    echo "No Maven (Debian: maven): the tests with Kafka will be skipped."
    exit 0
fi

# Copies the jars of some artifacts into a folder; `with` also those that they need.
fetch() {
    into=$1 needed=$2
    shift 2
    work=$(mktemp -d)
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>slackwater.tests</groupId><artifactId>jars</artifactId><version>1</version>'
        echo '<packaging>pom</packaging><dependencies>'
        for coordinates in "$@"; do
            IFS=: read -r group artifact version <<END
$coordinates
END
            echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>"
            if [ "$needed" = without ]; then
                echo '<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>'
            fi
            echo '</dependency>'
        done
        echo '</dependencies></project>'
    } >"$work/pom.xml"
    mvn -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$into" >"$work/log" 2>&1
    code=$?
    [ "$code" -eq 0 ] || cat "$work/log"
    rm -rf "$work"
    return $code
}

mkdir -p "$target"
folder=$(cd "$target" && pwd)
echo "Downloading a Kafka broker and Spark's Kafka connector into $target …"
# shellcheck disable=SC2086
if fetch "$folder/broker" with $broker && fetch "$folder/connector" without $connector; then
    printf '%s' "$wanted" >"$folder/ready"
else
    echo "Maven could not download them: the tests with Kafka will be skipped."
fi
exit 0
