#include "published_files.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

namespace {

void fetch_object(const net::Download& request) {
  net::ObjectStore store;
  store.download(request.url, request.to, request.progress);
  if (request.sha256.empty() || sha256_hex(MappedFile(request.to).bytes()) == request.sha256) return;
  std::filesystem::remove(request.to);
  throw DataError(fmt::format("{}: is not the published file: its SHA-256 is another", net::shown_url(request.url)),
                  "copy it there again from its home");
}

}  // namespace

SourceBytes map_source(const Path& path) {
  const auto file = std::make_shared<MappedFile>(path);
  return {path.string(), file->bytes(), file};
}

bool is_url(std::string_view text) { return text.find("://") != text.npos; }

Path fetch(const PublishedFile& file, const std::string& base, const PrepareOptions& options) {
  net::Download request;
  request.url = base;
  if (!base.ends_with(file.name)) request.url += fmt::format("{}{}", base.ends_with('/') ? "" : "/", file.name);
  request.to = options.out / file.name;
  // Downloads leave whole files only.
  const bool anything_goes = file.size == 0 && *file.sha256 == '\0';
  if (anything_goes && std::filesystem::exists(request.to)) return request.to;
  request.size = file.size;
  request.sha256 = file.sha256;
  if (options.progress) {
    request.progress = [&](std::uint64_t done, std::uint64_t total) {
      options.progress(file.name, done, total, "bytes");
    };
  }
  if (net::is_s3_url(request.url)) {
    fetch_object(request);
  } else {
    net::download(request);
  }
  return request.to;
}

}  // namespace dtrain::data
