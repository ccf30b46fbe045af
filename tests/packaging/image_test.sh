#!/usr/bin/env bash
# The container image of the bundle, opened by the programs of others: tests/packaging/image_test.sh BUILD_DIR
# No registry is contacted.
set -uo pipefail
build=$(realpath "$1") || exit 2
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
# shellcheck source=tests/packaging/roots.sh
source ./roots.sh
set +e
top=$(realpath ../..)
export DTRAIN_BUNDLE_LEVEL=1 DTRAIN_IMAGE_LEVEL=1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
readonly user=65532 place=/work

main() {
  local bundle
  bundle=$(bash "$top/packaging/bundle.sh" "$build" "$work") || exit 1
  version=$("$build/dtrain" --version | cut -d' ' -f2)
  test_case "the same bundle gives the same bytes" same_bytes "$bundle"
  archive=$(echo "$work"/first/*-oci.tar)
  test_case "another time is another image" other_time "$bundle"
  test_case "what is no bundle is refused" refuses
  if command -v skopeo >/dev/null; then
    test_case "skopeo finds labels, entry point and user" inspected
    test_case "skopeo makes an archive for docker of it" copied
    test_case "skopeo reads it as docker's own archive" read_as_docker
  else
    skip "skopeo" "no program skopeo here"
  fi
  if command -v umoci >/dev/null && [ "$(id -u)" = 0 ]; then
    test_case "umoci unpacks it" unpacked
    test_case "its program starts in that root as its user" runs --version
    test_case "it trains there, where only /work can be written" trains
    test_case "it trusts the public certificates" has_certificates
  else
    skip "umoci" "no program umoci here, or not root"
  fi
  local line="$passed passed, $failed failed"
  if [ $skipped -gt 0 ]; then line+=", $skipped skipped"; fi
  echo "$line"
  [ $failed -eq 0 ]
}

make() { bash "$top/packaging/image.sh" "$@"; }

same_bytes() {
  make "$1" "$work/first" && sleep 1.1 && (umask 077 && cd / && make "$1" "$work/second") &&
    cmp "$work"/first/*.tar "$work"/second/*.tar
}

other_time() {
  SOURCE_DATE_EPOCH=86400 make "$1" "$work/other" && ! cmp -s "$work"/first/*.tar "$work"/other/*.tar &&
    ! tar --utc -tvf "$work"/other/*.tar | grep -v '1970-01-02 00:00'
}

refuses() {
  : >"$work/something.tar.zst"
  make "$work/something.tar.zst" 2>"$work/said"
  [ $? -eq 1 ] && grep -q 'something.tar.zst: not a bundle' "$work/said"
}

inspected() {
  skopeo inspect "oci-archive:$archive" >"$work/inspected" &&
    skopeo inspect --config "oci-archive:$archive" >"$work/config" && python3 - "$work" "$version" <<'END'
import json, sys
work, version = sys.argv[1:]
image, config = (json.load(open(f"{work}/{name}")) for name in ("inspected", "config"))
assert (image["Os"], image["Architecture"], len(image["Layers"])) == ("linux", "amd64", 1), image
assert image["Labels"]["org.opencontainers.image.version"] == version, image["Labels"]
assert image["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0", image["Labels"]
assert config["config"]["User"] == "65532:65532", config
assert config["config"]["Entrypoint"] == ["/opt/dtrain/dtrain"], config
END
}

copied() {  # skopeo compares every hash on the way
  skopeo copy --insecure-policy "oci-archive:$archive:$version" "docker-archive:$work/docker.tar:localhost/dtrain:$version" &&
    tar -xOf "$work/docker.tar" manifest.json | grep -F "\"localhost/dtrain:$version\""
}

read_as_docker() {
  skopeo copy --insecure-policy "docker-archive:$archive:dtrain:$version" "dir:$work/dir" &&
    skopeo inspect "dir:$work/dir"
}

unpacked() {
  mkdir "$work/layout" && tar -C "$work/layout" -xf "$archive" && rm "$work/layout/manifest.json" &&
    umoci unpack --image "$work/layout:$version" "$work/unpacked" && umoci stat --image "$work/layout:$version"
}

runs() { env -i "$(command -v chroot)" --userspec=$user:$user "$work/unpacked/rootfs" /opt/dtrain/dtrain "$@"; }

trains() {
  mkdir -p "$work/unpacked/rootfs$place" && ! runs data prepare shapes --out /data --train-count 256 --val-count 64 &&
    runs data prepare shapes --out $place/data --train-count 256 --val-count 64 &&
    runs train --network resnet --num-layers 8 --data-train $place/data/shapes_train.rec \
      --data-val $place/data/shapes_val.rec --num-epochs 1 --model-prefix $place/m/shapes &&
    [ "$(stat --format=%u "$work/unpacked/rootfs$place/m")" = $user ]
}

has_certificates() {
  [ -d /usr/share/ca-certificates/mozilla ] || return 0
  local file=$work/unpacked/rootfs/etc/ssl/certs/ca-certificates.crt
  [ "$(grep -c BEGIN "$file")" = "$(cat /usr/share/ca-certificates/mozilla/*.crt | grep -c BEGIN)" ]
}

skip() { skipped=$((skipped + 1)); echo "SKIP image: $1: $2"; }

main
