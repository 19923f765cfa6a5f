# What the scripts that download jars for tests share; they include it with `. scripts/maven.sh`.

has() { command -v "$1" >/dev/null 2>&1; }

# require_maven TESTS: installs Maven where that is possible; ends the script where it is not.
require_maven() {
    if ! has mvn && has apt-get && [ "$(id -u)" -eq 0 ]; then
        echo "No Maven: installing it from this system's packages, for the tests with $1."
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null
    fi
    if ! has mvn; then
        echo "No Maven (Debian: maven): the tests with $1 will be skipped."
        exit 0
    fi
}

# fetch FOLDER EXCLUDED GROUP:ARTIFACT:VERSION…: copies the jars of artifacts, and what they need, into a folder, but
# none that they need from the group EXCLUDED: '*' is every group, and '' none.
fetch() {
    into=$1 excluded=$2
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
            if [ -n "$excluded" ]; then
                echo "<exclusions><exclusion><groupId>$excluded</groupId><artifactId>*</artifactId></exclusion></exclusions>"
            fi
            echo '</dependency>'
        done
        echo '</dependencies></project>'
    } >"$work/pom.xml"
    mvn -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$into" >"$work/log" 2>&1
    code=$?
    [ "$code" -eq 0 ] || tail -n 20 "$work/log"
    rm -rf "$work"
    return $code
}
