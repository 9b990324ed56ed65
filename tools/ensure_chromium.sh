#!/usr/bin/env bash
# Install Chromium for the page's tests, unless there is one. Without it those tests skip, and say why.
# Only root installs system packages here; others are told the command.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
[ -n "${CHROMIUM:-}" ] && exit 0

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "Installing Chromium for the page's tests, once"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update >/dev/null
  apt-get -qq install -y --no-install-recommends chromium >/dev/null
else
  echo "No Chromium here: the page's tests will be skipped. Install it (on Debian: sudo apt-get install chromium)," \
       "or set CHROMIUM to a Chrome or Chromium program." >&2
fi
