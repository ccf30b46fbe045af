#include "far_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::train {
namespace {

SharedStore or_own(const SharedStore& store) { return store ? store : std::make_shared<net::ObjectStore>(); }

// With its "/"; empty: none. The text alone counts: in a key, "//" and ".." have no meaning.
std::string_view folder_of(std::string_view key) { return key.substr(0, key.rfind('/') + 1); }

}  // namespace

bool is_far(const Path& path) { return net::is_object_url(path.string()); }

std::optional<net::ObjectState> find_far(const Path& url, const SharedStore& store) {
  return or_own(store)->find(url.string());
}

std::vector<std::byte> read_beginning(const Path& url, const net::ObjectState& found, std::uint64_t size,
                                      const SharedStore& store) {
  std::vector<std::byte> content(std::min(size, found.size));
  or_own(store)->read(url.string(), found, 0, content);
  return content;
}

std::optional<std::vector<std::byte>> read_far(const Path& url, std::uint64_t limit, const SharedStore& store) {
  const SharedStore used = or_own(store);
  const auto found = find_far(url, used);
  if (!found) return std::nullopt;
  net::require_at_most(limit, url.string(), *found);
  return read_beginning(url, *found, limit, used);
}

std::optional<std::string> read_manifest(const Path& file, const SharedStore& store) {
  if (is_far(file)) {
    const auto content = read_far(file, net::kLargestDocument, store);
    return content ? std::optional(std::string(text_of(*content))) : std::nullopt;
  }
  if (!file_exists(file)) return std::nullopt;
  return read_file(file);
}

void write_far(const std::string& stem, std::string_view header, std::span<const NamedTensor> tensors,
               std::string_view manifest, const SharedStore& store) {
  const SharedStore used = or_own(store);
  if (used->find(stem + ".json")) used->remove(stem + ".json");
  // The name has a step: once a newer checkpoint takes its place, no upload of this key comes that could use the parts.
  net::ObjectUpload data(*used, stem + ".safetensors", net::FailedParts::remove);
  data.write(bytes_of(header));
  for (const NamedTensor& tensor : tensors) data.write(std::as_bytes(tensor.values));
  data.finish();
  used->put(stem + ".json", bytes_of(manifest));
}

void replace_far(const Path& url, std::string_view content, const SharedStore& store) {
  or_own(store)->put(url.string(), bytes_of(content));
}

void try_far(const Path& url, const SharedStore& store) {
  const SharedStore used = or_own(store);
  used->put(url.string(), bytes_of("dtrain tries whether it may write here"));
  try {
    used->remove(url.string());
  } catch (const net::AwsError& error) {  // who may write may be one who may not remove
    if (error.facts().problem != net::AwsProblem::denied) throw;
  }
}

void remove_far(const Path& url, const SharedStore& store) { or_own(store)->remove(url.string()); }

std::vector<Path> list_far(const Path& prefix, const SharedStore& store) {
  if (!net::is_s3_url(prefix.string())) {
    const std::string shown = net::shown_url(prefix.string());
    throw UsageError(
        fmt::format("{}: a web server does not list the checkpoints of a prefix", shown),
        fmt::format("name the .json file of one, such as {}-0001.json, or copy it and its .safetensors file to this "
                    "machine; checkpoints are written to folders and to s3://BUCKET/KEY",
                    shown));
  }
  const net::S3Url wanted = net::parse_s3_url(prefix.string());
  std::vector<Path> files;
  or_own(store)->list(prefix.string(), [&](const net::ObjectEntry& entry) {
    if (folder_of(entry.key) == folder_of(wanted.key)) files.emplace_back(net::S3Url{wanted.bucket, entry.key}.text());
  });
  return files;
}

}  // namespace dtrain::train
