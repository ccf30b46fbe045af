#include "missing_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/text.hpp>
#include <dtrain/data/prepare.hpp>

namespace dtrain::config {
namespace {

// The names without their ending, in order, of the record files beside one.
std::vector<std::string> records_beside(const Path& file) {
  std::vector<std::string> names;
  std::error_code error;
  const Path folder = file.has_parent_path() ? file.parent_path() : Path(".");
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".rec") names.push_back(entry->path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string hint_of_mistyped(const Path& file, std::vector<std::string> there) {
  constexpr std::size_t kMostNames = 6;
  const auto place = [&](const std::string& name) { return (file.parent_path() / (name + ".rec")).string(); };
  if (const auto near = nearest_name(file.stem().string(), there)) return fmt::format("did you mean {}?", place(*near));
  const bool are_many = there.size() > kMostNames;
  there.resize(std::min(there.size(), kMostNames));
  std::ranges::transform(there, there.begin(), place);
  return fmt::format("the record files beside it are {}{}", join(there, ", "), are_many ? ", ..." : "");
}

}  // namespace

std::string hint_of_missing_records(const Path& file) {
  const std::string stem = file.stem().string();
  const std::string set = stem.substr(0, stem.rfind('_'));
  const std::vector<std::string> there = records_beside(file), known = data::prepare_names();
  const bool is_published = std::ranges::find(known, set) != known.end();
  const bool has_others = std::ranges::any_of(there, [&](const auto& name) { return name.starts_with(set + "_"); });
  if (has_others || (!is_published && !there.empty())) return hint_of_mistyped(file, there);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return fmt::format(
      "make it with `dtrain data prepare {} --out {}`, or from your own pictures with `dtrain data pack`",
      is_published ? set : "NAME", folder);
}

}  // namespace dtrain::config
