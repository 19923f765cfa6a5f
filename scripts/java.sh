#!/bin/sh
# Makes sure that there is a Java runtime of version 17 or newer, since Spark runs on one: `sh scripts/java.sh FOLDER`.
# If there is none on the PATH or in JAVA_HOME, it unpacks one into FOLDER and installs nothing system-wide.
# `sh scripts/java.sh install` installs one from this system's packages instead.
set -eu
has() { command -v "$1" >/dev/null 2>&1; }
major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
usable() { has "$1" && [ "$(major "$1")" -ge 17 ] 2>/dev/null; }

unpack_debian() {
    folder=$1
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$folder"
    options="-qq -o Dir::State=$work/state -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache=$work/cache"
    options="$options -o Debug::NoLocking=1 -o APT::Sandbox::User=$(id -un)"
    # shellcheck disable=SC2086
    apt-get $options update
    # shellcheck disable=SC2086
    package=$(apt-cache $options depends default-jre-headless | sed -n 's/.*Depends: \(openjdk-.*-jre-headless\)$/\1/p')
    # shellcheck disable=SC2086
    (cd "$work" && apt-get $options download "$package")
    dpkg -x "$work"/openjdk-*.deb "$folder/unpacked"
    home=$(ls -d "$folder"/unpacked/usr/lib/jvm/java-*-openjdk-* | head -n 1)
    # The package's settings are links into /etc: point them into the folder.
    find "$home/" -type l -lname '/etc/java-*' | while read -r link; do
        ln -sfn "$folder/unpacked$(readlink "$link")" "$link"
    done
    ln -sfn "$home" "$folder/runtime"
}

install_system_wide() {
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
}

target=${1:?"usage: java.sh FOLDER | install"}
for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java "$target/runtime/bin/java"; do
    if usable "$java"; then exit 0; fi
done
if [ "$target" = install ]; then
    install_system_wide
elif has apt-get && has dpkg; then
    echo "No Java runtime of version 17 or newer: unpacking one into $target …"
    unpack_debian "$(mkdir -p "$target" && cd "$target" && pwd)"
else
    echo "No Java runtime of version 17 or newer. Run \`make java\` to install one from this system's packages" >&2
    echo "(Fedora: java-17-openjdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME to one." >&2
    exit 1
fi
