#!/bin/sh
# Downloads, for the tests with checkpoints on HDFS and S3, a small HDFS and Spark's S3 connector with Maven, and a
# server that speaks S3 from PyPI: `sh scripts/hadoop.sh FOLDER` fills FOLDER/hdfs, FOLDER/s3a and FOLDER/s3server.
# Where that is not possible it says so, and those tests are skipped.
set -u
hdfs=org.apache.hadoop:hadoop-client-minicluster:3.5.0
s3a=org.apache.hadoop:hadoop-aws:3.5.0  # the version of the Hadoop that comes with PySpark
moto=moto==5.1.4
wanted="$hdfs $s3a $moto"
target=${1:?"usage: hadoop.sh FOLDER"}
if [ "$(cat "$target/ready" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
rm -rf "$target"
has() { command -v "$1" >/dev/null 2>&1; }
if ! has mvn && has apt-get && [ "$(id -u)" -eq 0 ]; then
    echo "No Maven: installing it from this system's packages, for the tests with HDFS and S3."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null
fi
if ! has mvn; then
    echo "No Maven (Debian: maven): the tests with HDFS and S3 will be skipped."
    exit 0
fi

# Copies the jars of an artifact, and what it needs but Hadoop itself, into a folder.
fetch() {
    into=$1 work=$(mktemp -d)
    IFS=: read -r group artifact version <<END
$2
END
    cat >"$work/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>slackwater.tests</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>
<exclusions>$3</exclusions></dependency></dependencies></project>
END
    mvn -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$into" >"$work/log" 2>&1
    code=$?
    [ "$code" -eq 0 ] || tail -n 20 "$work/log"
    rm -rf "$work"
    return $code
}

mkdir -p "$target"
folder=$(cd "$target" && pwd)
python=$(dirname "$target")/bin/python
spark_has='<exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>'
echo "Downloading HDFS, Spark's S3 connector (some 600 MB) and an S3 server into $target …"
if fetch "$folder/hdfs" $hdfs '' && fetch "$folder/s3a" $s3a "$spark_has" &&
    "$python" -m venv "$folder/s3server" &&
    "$folder/s3server/bin/pip" install --quiet --disable-pip-version-check "moto[server]==${moto#moto==}"; then
    printf '%s' "$wanted" >"$folder/ready"
else
    echo "They could not be downloaded: the tests with HDFS and S3 will be skipped."
fi
exit 0
