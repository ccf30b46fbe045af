#include "split_folders.hpp"

#include <algorithm>
#include <set>

namespace dtrain::data {
namespace {

// Empty where the folders are classes.
std::vector<SplitFolder> splits_among(const std::vector<std::string>& names, const Path& below,
                                      const FoldersIn& folders_in) {
  std::vector<SplitFolder> found;
  const auto find = [&](PackSplit split, std::initializer_list<std::string_view> usual) {
    for (const std::string_view name : usual) {
      if (std::ranges::find(names, name) == names.end() || folders_in(below / name).empty()) continue;
      found.push_back({split, std::string(name)});
      return;
    }
  };
  find(PackSplit::train, {"train", "training"});
  find(PackSplit::validation, {"val", "valid", "validation"});
  find(PackSplit::test, {"test", "testing"});
  const bool is_split = found.size() >= 2 && found.front().split == PackSplit::train;
  return is_split ? found : std::vector<SplitFolder>();
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

SplitFolders find_splits(const FoldersIn& folders_in) {
  constexpr int kDeepestSplit = 16;  // the path of an archive's folder may stand in front; links may lead back
  SplitFolders found;
  for (int depth = 0; depth < kDeepestSplit; ++depth) {
    const std::vector<std::string> names = folders_in(found.below);
    found.folders = splits_among(names, found.below, folders_in);
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
