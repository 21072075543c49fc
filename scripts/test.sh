#!/usr/bin/env bash
# Runs the tests with nothing but Go installed. With a C compiler there, the race
# detector is on as well. Arguments go to `go test`; without any: all packages.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
if [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null 2>&1; then
  flags+=(-race)
else
  echo "no C compiler: running without the race detector"
fi
if [ $# -eq 0 ]; then set -- ./...; fi
exec go test -shuffle=on -timeout 20m "${flags[@]}" "$@"
