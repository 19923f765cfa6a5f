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
. "$(dirname "$0")/maven.sh"
require_maven "HDFS and S3"

mkdir -p "$target"
folder=$(cd "$target" && pwd)
python=$(dirname "$target")/bin/python
echo "Downloading HDFS, Spark's S3 connector (some 600 MB) and an S3 server into $target …"
if fetch "$folder/hdfs" '' $hdfs && fetch "$folder/s3a" org.apache.hadoop $s3a &&
    "$python" -m venv "$folder/s3server" &&
    "$folder/s3server/bin/pip" install --quiet --disable-pip-version-check "moto[server]==${moto#moto==}"; then
    printf '%s' "$wanted" >"$folder/ready"
else
    echo "They could not be downloaded: the tests with HDFS and S3 will be skipped."
fi
exit 0
