#!/usr/bin/env bash
# Install Chromium for the page's tests, unless there is one. The tests skip, saying why, without it.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
[ -n "${CHROMIUM:-}" ] && exit 0

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
  echo "Installing Chromium for the page's tests, once"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get -qq update >/dev/null
  "${as_root[@]}" apt-get -qq install -y --no-install-recommends chromium >/dev/null
else
  echo "No Chromium here: the page's tests will be skipped." \
       "Install it, or set CHROMIUM to a Chrome or Chromium program." >&2
fi
