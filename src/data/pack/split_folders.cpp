#include "split_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {
namespace {

// Folders are called Train and TEST as well. Of two that differ in case alone, `usual` itself comes first.
std::vector<std::string>::const_iterator find_folder(const std::vector<std::string>& names, std::string_view usual) {
  const auto exact = std::ranges::find(names, usual);
  return exact != names.end() ? exact : std::ranges::find(names, usual, lower_case);
}

struct SplitNames {
  PackSplit split;
  std::array<std::string_view, 3> names;
};
constexpr std::array<SplitNames, 3> kSplitNames{{{PackSplit::train, {"train", "training"}},
                                                 {PackSplit::validation, {"val", "valid", "validation"}},
                                                 {PackSplit::test, {"test", "testing"}}}};

// A folder of a split without folders of classes: Kaggle's test sets have no labels.
std::string find_flat_split(const std::vector<std::string>& names, const Path& below, const FoldersIn& folders_in) {
  for (const SplitNames& each : kSplitNames) {
    for (const std::string_view usual : each.names) {
      const auto folder = find_folder(names, usual);
      if (folder != names.end() && folders_in(below / *folder).empty()) return *folder;
    }
  }
  return {};
}

// Empty where the folders are classes.
std::vector<SplitFolder> splits_among(const Path& source, const std::vector<std::string>& names, const Path& below,
                                      const FoldersIn& folders_in) {
  std::vector<SplitFolder> found;
  for (const auto& [split, usual_names] : kSplitNames) {
    for (const std::string_view usual : usual_names) {
      const auto folder = find_folder(names, usual);
      if (folder == names.end() || folders_in(below / *folder).empty()) continue;
      found.push_back({split, *folder});
      break;
    }
  }
  if (found.size() >= 2 && found.front().split == PackSplit::train) return found;
  const std::string flat = found.empty() ? std::string() : find_flat_split(names, below, folders_in);
  if (flat.empty()) return {};
  const Path folder = below.empty() ? source : source / below;
  const std::string& filled = found.front().name;
  const bool in_archive = !std::filesystem::is_directory(source);
  const Path packable = (in_archive ? below : folder) / filled;
  throw DataError(fmt::format("{}: its folder {} holds folders of classes, and {} beside it holds none",
                              folder.string(), filled, flat),
                  fmt::format("{}pack {} alone, or put a folder of pictures for each class into {}",
                              in_archive ? "unpack it, then " : "", packable.string(), flat));
}

void add_split(const PackList& split, PackSplit part, PackList& whole) {
  for (const PackItem& item : split.items) {
    const std::string& name = split.classes[static_cast<std::size_t>(item.labels.front())];
    if (name == ".") {
      whole.skipped[kBesideClasses].push_back(item.file);
      continue;
    }
    const auto label = std::ranges::lower_bound(whole.classes, name) - whole.classes.begin();
    whole.items.push_back({whole.items.size(), {static_cast<float>(label)}, item.file, item.place, part});
  }
  whole.empty_folders.insert(whole.empty_folders.end(), split.empty_folders.begin(), split.empty_folders.end());
  for (const auto& [reason, files] : split.skipped) {
    std::vector<std::string>& all = whole.skipped[reason];
    all.insert(all.end(), files.begin(), files.end());
  }
}

}  // namespace

SplitFolders find_splits(const Path& source, const FoldersIn& folders_in) {
  constexpr int kDeepestSplit = 16;  // the path of an archive's folder may stand in front
  SplitFolders found;
  for (int depth = 0; depth < kDeepestSplit; ++depth) {
    const std::vector<std::string> names = folders_in(found.below);
    found.folders = splits_among(source, names, found.below, folders_in);
    if (!found.folders.empty() || names.size() != 1) break;
    found.below /= names.front();
  }
  return found;
}

void join_splits(const std::vector<PackList>& lists, const std::vector<SplitFolder>& folders, PackList& whole) {
  std::set<std::string> names;
  for (const PackList& list : lists) names.insert(list.classes.begin(), list.classes.end());
  names.erase(".");
  whole.is_split = true;
  whole.classes.assign(names.begin(), names.end());
  for (std::size_t i = 0; i < lists.size(); ++i) add_split(lists[i], folders[i].split, whole);
}

void skip_other_folders(const std::vector<std::string>& names, const SplitFolders& splits, PackList& whole) {
  for (const std::string& name : names) {
    if (std::ranges::find(splits.folders, name, &SplitFolder::name) == splits.folders.end())
      whole.skipped[kOfNoSplit].push_back((splits.below / name).string());
  }
}

}  // namespace dtrain::data
