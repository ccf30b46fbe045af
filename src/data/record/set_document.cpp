#include "set_document.hpp"

#include <string_view>

#include <dtrain/data/remote.hpp>

namespace dtrain::data {
namespace {

std::optional<std::string> content_of(const Path& file, net::ObjectStore* store) {
  if (!is_remote(file)) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
    return read_file(file);
  }
  const auto state = store->find(file.string());
  if (!state) return std::nullopt;
  return store->content(file.string(), *state, net::kLargestDocument);
}

}  // namespace

Path set_document_path(const std::string& prefix) { return prefix + ".pack.json"; }

std::optional<Json> read_set_document(const std::string& prefix, net::ObjectStore* store) {
  const Path file = set_document_path(prefix);
  const auto content = content_of(file, store);
  return content ? std::optional(Json::parse(*content, file.string())) : std::nullopt;
}

std::optional<std::string> without_split(const std::string& prefix) {
  for (const std::string_view split : {"_train", "_val", "_test"}) {
    if (prefix.ends_with(split)) return prefix.substr(0, prefix.size() - split.size());
  }
  return std::nullopt;
}

}  // namespace dtrain::data
