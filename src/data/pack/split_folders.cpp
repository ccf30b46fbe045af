#include "split_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
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
  std::array<std::string_view, 5> names;
};
constexpr std::array<SplitNames, 3> kSplitNames{
    {{PackSplit::train, {"train", "training"}},
     {PackSplit::validation, {"val", "valid", "validation", "eval", "evaluation"}},
     {PackSplit::test, {"test", "testing"}}}};

std::optional<PackSplit> split_named(std::string_view name) {
  for (const auto& [split, usual_names] : kSplitNames) {
    if (std::ranges::find(usual_names, lower_case(name)) != usual_names.end()) return split;
  }
  return std::nullopt;
}

// The split that a word of the name says: "test_set", "test2017" and "Test" are of the test.
std::optional<PackSplit> split_in(std::string_view name) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  for (auto word = name.begin(); word != name.end();) {
    const auto end = std::find_if_not(word, name.end(), is_letter);
    const std::optional<PackSplit> split = word == end ? std::nullopt : split_named({word, end});
    if (split) return split;
    word = end == name.end() ? end : end + 1;
  }
  return std::nullopt;
}

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

// The longest path that leads to all of them, and is none of them.
Path common_folder(const std::vector<Path>& classes) {
  Path common = classes.empty() ? Path() : classes.front().parent_path();
  for (const Path& path : classes) {
    const Path parent = path.parent_path();
    const auto end = std::mismatch(common.begin(), common.end(), parent.begin(), parent.end()).first;
    Path shared;
    for (auto part = common.begin(); part != end; ++part) shared /= *part;
    common = shared;
  }
  return common;
}

// Throws DataError where the folders in `common` that hold the classes have the names of data sets: two are
// called train, val or test, or all have such a word in their names. Of one split alone they may be classes: a diesel
// train and a steam train.
void refuse_sets(const Path& source, const Path& common, const std::vector<Path>& classes) {
  std::set<std::string> folders;
  for (const Path& path : classes) {
    const Path behind = path_behind(path, common).value_or("");
    if (!behind.empty()) folders.insert(behind.begin()->string());
  }
  std::set<PackSplit> named, meant;
  std::vector<std::string> sets;
  for (const std::string& folder : folders) {
    if (const auto split = split_named(folder)) named.insert(*split);
    if (const auto split = split_in(folder)) {
      meant.insert(*split);
      sets.push_back(folder);
    }
  }
  if (named.size() < 2 && (meant.size() < 2 || sets.size() < folders.size())) return;
  throw DataError(
      fmt::format("{}: its folders {} have the names of data sets, not of classes",
                  (common.empty() ? source : source / common).string(), join(sets, ", ")),
      "name them train, val and test, and put a folder of pictures for each class into each of them; or pack one of "
      "them alone; setting 'labels' and setting 'coco' take the classes from a file");
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

std::optional<Path> path_behind(const Path& path, const Path& folder) {
  auto [rest, end] = std::mismatch(path.begin(), path.end(), folder.begin(), folder.end());
  if (end != folder.end()) return std::nullopt;
  Path behind;
  for (; rest != path.end(); ++rest) behind /= *rest;
  return behind;
}

void settle_classes(const Path& source, std::vector<std::string>& classes) {
  const std::vector<Path> paths(classes.begin(), classes.end());
  const Path common = common_folder(paths);
  refuse_sets(source, common, paths);
  Path folder, split;
  for (const Path& name : common) {
    folder /= name;
    if (split_named(name.string())) split = folder;
  }
  for (std::string& name : classes) name = path_behind(name, split)->string();
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
