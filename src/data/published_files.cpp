#include "published_files.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http.hpp>

namespace dtrain::data {

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
  request.size = file.size;
  request.sha256 = file.sha256;
  if (options.progress) {
    request.progress = [&](std::uint64_t done, std::uint64_t total) {
      options.progress(file.name, done, total, "bytes");
    };
  }
  net::download(request);
  return request.to;
}

}  // namespace dtrain::data
