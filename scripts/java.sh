#!/bin/sh
# Checks that a Java runtime of version 17 or newer is there, since Spark runs on one: `sh scripts/java.sh`.
# `sh scripts/java.sh install` installs one from this system's packages if there is none.
set -eu
has() { command -v "$1" >/dev/null 2>&1; }
major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java; do
    if has "$java" && [ "$(major "$java")" -ge 17 ] 2>/dev/null; then exit 0; fi
done
if [ "${1:-check}" != install ]; then
    echo "No Java runtime of version 17 or newer. Run \`make java\` to install one from this system's packages" >&2
    echo "(Debian: default-jre-headless; Fedora: java-17-openjdk-headless; macOS: brew install openjdk@17)," >&2
    echo "or set JAVA_HOME to one." >&2
    exit 1
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
if has apt-get; then
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq default-jre-headless >/dev/null
elif has dnf; then
    $as_root dnf install -y -q java-17-openjdk-headless
elif has apk; then
    $as_root apk add -q openjdk17-jre-headless
elif has brew; then
    brew install --quiet openjdk@17
    echo "Now run: export JAVA_HOME=$(brew --prefix openjdk@17)"
else
    echo "This system has none of apt-get, dnf, apk and brew: install a Java runtime by hand and set JAVA_HOME." >&2
    exit 1
fi
