#!/usr/bin/env bash
# Makes a container image of a bundle, without a daemon and without root, and prints the path of its archive.
#   packaging/image.sh BUNDLE.tar.zst [OUT_DIR]      (default: the folder of the bundle)
# The archive is an OCI image layout, which `podman load`, `skopeo copy oci-archive:` and containerd take, with the
# manifest.json beside it that older versions of `docker load` need. Its only layer has the bundle in /opt/dtrain, the
# public certificates of this machine's package ca-certificates, and a user without rights.
# The same bundle gives the same bytes. SOURCE_DATE_EPOCH is the time in the image (default: the date of the version).
set -euo pipefail
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: packaging/image.sh BUNDLE.tar.zst [OUT_DIR]" >&2; exit 2; }
bundle=$(realpath "$1")
out=${2:-$(dirname "$bundle")}
mkdir -p "$out"
out=$(realpath "$out")
readonly user=65532 certificates=/usr/share/ca-certificates/mozilla

main() {
  local tool name version created layer diff config manifest
  for tool in zstd gzip sha256sum; do
    command -v $tool >/dev/null || fail "$tool is missing: run packaging/install-deps.sh build"
  done
  name=$(basename "$bundle" .tar.zst)
  [[ $name =~ ^dtrain-([0-9][0-9.]*)-linux-x86_64$ ]] || fail "$bundle: not a bundle that packaging/bundle.sh made"
  version=${BASH_REMATCH[1]}
  epoch=${SOURCE_DATE_EPOCH:-$(date --utc --date="$(sed -n 's/^set(DTRAIN_DATE \([0-9-]*\)).*/\1/p' \
    "$(dirname "${BASH_SOURCE[0]}")/../CMakeLists.txt")" +%s)}
  created=$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  image=$work/image
  mkdir -p "$image/blobs/sha256" "$work/root"

  fill_root "$name"
  pack_layer
  diff=$(hash_of "$work/layer.tar")
  gzip -n -"${DTRAIN_IMAGE_LEVEL:-9}" "$work/layer.tar"
  layer=$(put "$work/layer.tar.gz")
  config_json "$version" "$created" "$diff" >"$work/config.json"
  config=$(put "$work/config.json")
  manifest_json "$version" "$config" "$layer" >"$work/manifest.json"
  manifest=$(put "$work/manifest.json")
  index_json "$version" "$manifest" >"$image/index.json"
  docker_json "$version" "$config" "$layer" >"$image/manifest.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$image/oci-layout"
  pack --owner=0 --group=0 --mode=u=rwX,go=rX -C "$image" -cf "$out/$name-oci.tar" blobs index.json manifest.json oci-layout
  echo "$out/$name-oci.tar"
}

fill_root() {  # fill_root NAME_OF_BUNDLE
  local root=$work/root
  mkdir -p "$root/opt" "$root/etc" "$root/tmp" "$root/work"
  tar -C "$root/opt" --no-same-owner -xpf "$bundle"
  mv "$root/opt/$1" "$root/opt/dtrain"
  printf '%s:x:%s:%s::/work:/opt/dtrain/dtrain\n' root 0 0 dtrain $user $user >"$root/etc/passwd"
  printf '%s:x:%s:\n' root 0 dtrain $user >"$root/etc/group"
  copy_certificates "$root/etc/ssl/certs"
  chmod -R u=rwX,go=rX "$root"
  chmod 1777 "$root/tmp"
}

copy_certificates() {  # those of the distribution's package only: a machine may trust others that concern it alone
  if [ ! -d $certificates ]; then
    echo "image: $certificates does not exist: https:// and s3:// will need SSL_CERT_FILE in the container" >&2
    return
  fi
  mkdir -p "$1"
  LC_ALL=C find $certificates -name '*.crt' -print0 | LC_ALL=C sort -z | xargs -0 cat >"$1/ca-certificates.crt"
}

pack_layer() {  # the working folder belongs to the user of the image
  pack --owner=0 --group=0 -C "$work/root" --exclude=./work -cf "$work/layer.tar" .
  pack --owner=$user --group=$user -C "$work/root" -rf "$work/layer.tar" ./work
}

pack() {
  LC_ALL=C tar --sort=name --numeric-owner --mtime="@$epoch" --format=ustar "$@"
}

hash_of() { sha256sum "$1" | cut -d' ' -f1; }

put() {  # put FILE: moves it into the image, and prints its hash
  local hash
  hash=$(hash_of "$1")
  mv "$1" "$image/blobs/sha256/$hash"
  echo "$hash"
}

size_of() { stat --format=%s "$image/blobs/sha256/$1"; }

described() {  # described MEDIA_TYPE HASH [MORE]: an OCI descriptor
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s%s}' \
    "$1" "$2" "$(size_of "$2")" "${3:-}"
}

config_json() {  # config_json VERSION CREATED DIFF_ID
  printf '{"created":"%s","architecture":"amd64","os":"linux","config":{"User":"%s:%s",' "$2" $user $user
  printf '"Env":["PATH=/opt/dtrain:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",'
  printf '"NVIDIA_DRIVER_CAPABILITIES=compute,utility"],'
  printf '"Entrypoint":["/opt/dtrain/dtrain"],"WorkingDir":"/work","Labels":%s},' "$(labels "$1" "$2")"
  printf '"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},' "$3"
  printf '"history":[{"created":"%s","created_by":"packaging/image.sh"}]}' "$2"
}

labels() {  # labels VERSION CREATED
  printf '{"org.opencontainers.image.title":"dtrain","org.opencontainers.image.version":"%s",' "$1"
  printf '"org.opencontainers.image.description":"trains image models while workers join and leave",'
  printf '"org.opencontainers.image.licenses":"Apache-2.0","org.opencontainers.image.created":"%s"}' "$2"
}

manifest_json() {  # manifest_json VERSION CONFIG LAYER
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
    "$(described config.v1+json "$2")" "$(described layer.v1.tar+gzip "$3")"
}

index_json() {  # index_json VERSION MANIFEST
  local more='"platform":{"architecture":"amd64","os":"linux"}'
  more=",\"annotations\":{\"org.opencontainers.image.ref.name\":\"$1\"},$more"
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' \
    "$(described manifest.v1+json "$2" "$more")"
}

docker_json() {  # docker_json VERSION CONFIG LAYER
  printf '[{"Config":"blobs/sha256/%s","RepoTags":["dtrain:%s"],"Layers":["blobs/sha256/%s"]}]' "$2" "$1" "$3"
}

fail() { echo "image: $*" >&2; exit 1; }

main
