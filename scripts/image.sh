#!/usr/bin/env bash
# Makes the container image rollcall:latest (or $ROLLCALL_IMAGE).
#
#   scripts/image.sh            from source inside the builder image, if that is here or can
#                               be pulled; else from a binary built on this machine
#   scripts/image.sh source     only the first; $ROLLCALL_BUILDER names the builder image
#   scripts/image.sh prebuilt   only the second: needs Go here, pulls nothing
set -euo pipefail
cd "$(dirname "$0")/.."
image=${ROLLCALL_IMAGE:-rollcall:latest}
builder=${ROLLCALL_BUILDER:-golang:1.26}
version=${ROLLCALL_VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo devel)}

source_image() {
  docker build -f deploy/docker/Dockerfile --build-arg "BUILDER=$builder" --build-arg "VERSION=$version" -t "$image" .
}

prebuilt_image() {
  rm -rf bin/image
  mkdir -p bin/image/data bin/image/secret
  echo "building the binary with $(go env GOVERSION)"
  CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w -X main.version=$version" -o bin/image/rollcall ./cmd/rollcall
  docker build -f deploy/docker/Dockerfile.prebuilt -t "$image" .
}

case "${1:-auto}" in
  source) source_image ;;
  prebuilt) prebuilt_image ;;
  auto)
    if docker image inspect "$builder" >/dev/null 2>&1 || docker pull "$builder"; then
      source_image
    else
      echo "$builder cannot be pulled: building the binary on this machine instead"
      prebuilt_image
    fi ;;
  *) sed -n '2,7p' "$0" | cut -c3-; exit 2 ;;
esac
echo "made $image, version $version; next: docker-compose up -d --no-build"
