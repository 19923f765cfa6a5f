#!/bin/sh
# Installs a headless Chromium and its driver from this system's packages, for the tests of the live page.
# Where that is not possible it says so, and those tests are skipped.
set -u
has() { command -v "$1" >/dev/null 2>&1; }
if { has chromium || has chromium-browser || has google-chrome; } && has chromedriver; then exit 0; fi
as_root=""
[ "$(id -u)" -eq 0 ] || { has sudo && sudo -n true 2>/dev/null && as_root="sudo -n"; }
if has apt-get && { [ "$(id -u)" -eq 0 ] || [ -n "$as_root" ]; }; then
    echo "No Chromium with its driver: installing both from this system's packages, for the tests of the live page."
    $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        $as_root apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null && exit 0
fi
echo "No Chromium with its driver (Debian: chromium, chromium-driver): the tests of the live page will be skipped."
exit 0
