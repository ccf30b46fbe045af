#include "set_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
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

// The name of a set whose shard this may be: p_train of p_train_3.rec, else the name without its ending.
std::string without_shard(const Path& rec) {
  std::string stem = Path(rec).replace_extension().string();
  const std::size_t mark = stem.rfind('_');
  if (mark == stem.npos || mark + 1 == stem.size()) return stem;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const bool is_number = std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(mark) + 1, stem.end(), is_digit);
  return is_number ? stem.substr(0, mark) : stem;
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

std::vector<std::string> prefixes_of(const Path& rec) {
  std::vector<std::string> prefixes{without_shard(rec)};
  if (const auto packed = without_split(prefixes.front())) prefixes.push_back(*packed);
  const std::string own = Path(rec).replace_extension().string();
  if (own != prefixes.front()) prefixes.push_back(own);
  return prefixes;
}

std::vector<Path> unfinished_in(const Json& document, const Path& folder) {
  std::vector<Path> files;
  if (const Json* names = document.find("unfinished")) {
    for (const Json& name : names->as_array()) files.push_back(folder / name.as_string());
  }
  return files;
}

void refuse_unfinished(const Path& file, const std::string& prefix) {
  throw DataError(fmt::format("{}: is not finished, as {} says: `dtrain data pack` was interrupted, or still runs",
                              file.string(), set_document_path(prefix).string()),
                  fmt::format("run the same command again, which goes on where it was interrupted; or remove {} where "
                              "the records come from elsewhere",
                              set_document_path(prefix).string()));
}

}  // namespace dtrain::data
