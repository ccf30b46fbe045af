// Folders of training, validation and test that each hold the folders of the classes: train/cat beside val/cat.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

struct SplitFolder {
  PackSplit split;
  std::string name;
};

struct SplitFolders {
  Path below = {};                        // the folder that holds them, relative to the source
  std::vector<SplitFolder> folders = {};  // empty: the folders of the source are classes
};

// Names of the folders in one folder of a source, by its path; the source itself is "".
using FoldersIn = std::function<std::vector<std::string>(const Path&)>;

// Looks also behind folders that are the only one in theirs: an archive of a folder, or a folder one level too high,
// holds set/train/cat. Throws DataError where only one folder of a split, or all but that of training, has folders of
// classes; a flat third one is left to skip_other_folders(). `source` is for the message.
SplitFolders find_splits(const Path& source, const FoldersIn& folders_in);

// The rest of a path that begins with `folder`, part by part; nullopt: it does not.
std::optional<Path> path_behind(const Path& path, const Path& folder);

// Where there are no splits: `classes`, the paths of their folders in `source`, lose the name of a single split above
// all of them, so that train/cat is "cat". Throws DataError where the folders are sets, such as train_set beside
// test_set, or train beside test, both without folders of classes.
void settle_classes(const Path& source, std::vector<std::string>& classes);

// Adds the lists of the splits, whose classes are named without the split's folder, to `whole`, whose classes are then
// those of all splits.
void join_splits(const std::vector<PackList>& lists, const std::vector<SplitFolder>& folders, PackList& whole);

// Reasons of PackList::skipped.
inline constexpr const char* kBesideClasses = "beside the folders of the classes";
inline constexpr const char* kOfNoSplit = "a folder that is of no split";

// Adds those of `names`, the folders beside the splits, that are no split.
void skip_other_folders(const std::vector<std::string>& names, const SplitFolders& splits, PackList& whole);

}  // namespace dtrain::data
