#!/bin/sh
# Makes sure that a Java runtime of version 17 or newer is there, since Spark runs on one.
set -eu
major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java; do
    if command -v "$java" >/dev/null 2>&1 && [ "$(major "$java")" -ge 17 ] 2>/dev/null; then exit 0; fi
done
as_root=""
[ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && as_root="sudo"; }
echo "No Java runtime of version 17 or newer: installing one from this system's packages."
if [ "$(id -u)" -eq 0 ] || [ -n "$as_root" ]; then
    if command -v apt-get >/dev/null 2>&1; then
        $as_root apt-get update -qq && $as_root apt-get install -y -qq default-jre-headless >/dev/null && exit 0
    elif command -v dnf >/dev/null 2>&1; then
        $as_root dnf install -y -q java-17-openjdk-headless && exit 0
    elif command -v apk >/dev/null 2>&1; then
        $as_root apk add -q openjdk17-jre-headless && exit 0
    fi
fi
if command -v brew >/dev/null 2>&1; then
    brew install --quiet openjdk@17 && echo "Now run: export JAVA_HOME=$(brew --prefix openjdk@17)" && exit 1
fi
echo "Please install a Java runtime, version 17 or newer (Debian: default-jre-headless; Fedora:" >&2
echo "java-17-openjdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME to one, and try again." >&2
exit 1
