#include "set_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

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

// Lists of files: {"file": NAME, ...} or NAME.
constexpr std::array<std::string_view, 3> kListsOfFiles{"files", "earlier", "unfinished"};

std::string listed_name(const Json& entry) {
  return entry.is_string() ? entry.as_string() : entry.at("file").as_string();
}

Json without_file(const Json& document, const std::string& name) {
  Json rest = document;
  for (const std::string_view key : kListsOfFiles) {
    const Json* const list = document.find(key);
    if (!list) continue;
    Json::Array kept;
    for (const Json& entry : list->as_array()) {
      if (listed_name(entry) != name) kept.push_back(entry);
    }
    rest[key] = Json(std::move(kept));
  }
  if (const Json* const sets = document.find("earlier_sets")) {
    Json::Array kept;
    for (const Json& set : sets->as_array()) kept.push_back(without_file(set, name));
    rest["earlier_sets"] = Json(std::move(kept));
  }
  return rest;
}

bool lists_files(const Json& document) {
  return std::ranges::any_of(kListsOfFiles, [&](const std::string_view key) {
    const Json* const list = document.find(key);
    return list && !list->as_array().empty();
  });
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

void forget_in_other_sets(const Path& rec, const std::string& own_prefix) {
  for (const std::string& prefix : prefixes_of(rec)) {
    if (prefix == own_prefix) continue;
    const std::optional<Json> document = advice_of([&] { return read_set_document(prefix, nullptr); });
    if (!document) continue;
    const std::optional<Json> rest =
        advice_of([&] { return std::optional(without_file(*document, rec.filename().string())); });
    if (!rest || *rest == *document) continue;
    if (lists_files(*rest)) {
      write_file_atomic(set_document_path(prefix), rest->dump(1) + "\n");
    } else {
      std::filesystem::remove(set_document_path(prefix));
    }
  }
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
