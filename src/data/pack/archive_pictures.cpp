// Pictures in archives: WebDataset's groups of files with one name and several endings, or folders as classes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "pictures.hpp"
#include "split_folders.hpp"

namespace dtrain::data {
namespace {

class ArchiveStore : public PictureStore {
 public:
  explicit ArchiveStore(const std::vector<Path>& files) : archives(files) {}
  SourceBytes read(const PackItem& item) const override { return archives.open(item.place); }
  std::string stamp(const PackItem& item) const override { return archives.stamp(item.place); }

  const Archives archives;
};

// A name without what follows the first dot behind the last "/": what the files of one sample share.
std::string_view key_of(std::string_view name) {
  const std::size_t file = name.rfind('/') + 1;
  return name.substr(0, name.find('.', file));
}

enum class Part { picture, number, document, other };

Part part_of(std::string_view name) {
  if (name.ends_with(".cls")) return Part::number;
  if (name.ends_with(".json")) return Part::document;
  return is_picture(name) ? Part::picture : Part::other;
}

float number_in(const SourceBytes& file) {
  if (const auto label = parse_number(trim(text_of(file.bytes)))) return static_cast<float>(*label);
  throw DataError(fmt::format("{}: is no number", file.name), "a .cls file holds the label alone");
}

// Documents may also say other things.
std::optional<float> label_in_document(const SourceBytes& file) {
  const Json document = Json::parse(text_of(file.bytes), file.name);
  const Json* label = document.is_object() ? document.find("label") : nullptr;
  if (!label || !label->is_number()) return std::nullopt;
  return static_cast<float>(label->as_number());
}

// Archives that have .cls files have labels by sample, those with only .json files where these say "label".
bool has_labels_by_sample(const Archives& archives) {
  const auto& members = archives.members();
  const auto has = [&](Part part) {
    return std::find_if(members.begin(), members.end(),
                        [&](const ArchiveMember& each) { return part_of(each.name) == part; });
  };
  if (has(Part::number) != members.end()) return true;
  const auto document = has(Part::document);
  if (document == members.end()) return false;
  return label_in_document(archives.open(static_cast<std::size_t>(document - members.begin()))).has_value();
}

// Samples of different archives may have the same name.
std::string sample_of(const ArchiveMember& member) { return fmt::format("{}/{}", member.archive, key_of(member.name)); }

// By sample. What .cls says counts more.
std::unordered_map<std::string, float> read_labels(const Archives& archives) {
  const auto& members = archives.members();
  std::unordered_map<std::string, float> labels;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (part_of(members[i].name) == Part::number) labels[sample_of(members[i])] = number_in(archives.open(i));
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (part_of(members[i].name) != Part::document || labels.contains(sample_of(members[i]))) continue;
    if (const auto label = label_in_document(archives.open(i))) labels[sample_of(members[i])] = *label;
  }
  return labels;
}

PackList list_samples(const Archives& archives) {
  const auto& members = archives.members();
  const auto labels = read_labels(archives);
  PackList list;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (part_of(members[i].name) != Part::picture) continue;
    const auto label = labels.find(sample_of(members[i]));
    if (label == labels.end()) {
      ++list.unlabelled;
    } else {
      list.items.push_back({list.items.size(), {label->second}, members[i].name, i});
    }
  }
  return list;
}

// Members by their folders, which are compared part by part, as a walk over them goes.
using MembersByFolder = std::map<Path, std::vector<std::size_t>>;

MembersByFolder pictures_by_folder(const std::vector<ArchiveMember>& members, PackList& list) {
  MembersByFolder folders;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Path name = members[i].name;
    if (!is_picture(name)) continue;
    if (std::any_of(name.begin(), name.end(), is_of_other_programs)) {
      list.skipped[kHidden].push_back(name.string());
    } else {
      folders[name.parent_path()].push_back(i);
    }
  }
  for (auto& [folder, pictures] : folders) {
    std::stable_sort(pictures.begin(), pictures.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].name < members[b].name; });
  }
  return folders;
}

// The rest of a path that begins with `folder`.
std::optional<Path> path_behind(const Path& path, const Path& folder) {
  auto [rest, end] = std::mismatch(path.begin(), path.end(), folder.begin(), folder.end());
  if (end != folder.end()) return std::nullopt;
  Path behind;
  for (; rest != path.end(); ++rest) behind /= *rest;
  return behind;
}

std::vector<std::string> folders_below(const MembersByFolder& folders, const Path& below) {
  std::vector<std::string> names;
  for (const auto& [folder, pictures] : folders) {
    const auto behind = path_behind(folder, below);
    if (!behind || behind->empty()) continue;
    const std::string name = behind->begin()->string();
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

// A class for each folder in `below`, named without it.
void add_folders(const MembersByFolder& folders, const Path& below, const std::vector<ArchiveMember>& members,
                 PackList& list) {
  for (const auto& [folder, pictures] : folders) {
    const auto behind = path_behind(folder, below);
    if (!behind) continue;
    const auto label = static_cast<float>(list.classes.size());
    list.classes.push_back(behind->empty() ? "." : behind->string());
    for (const std::size_t i : pictures) list.items.push_back({list.items.size(), {label}, members[i].name, i});
  }
}

// Lists the members in the order of a folder with the same files.
PackList list_folders(const Archives& archives) {
  const auto& members = archives.members();
  PackList list;
  const MembersByFolder folders = pictures_by_folder(members, list);
  const SplitFolders splits = find_splits([&](const Path& below) { return folders_below(folders, below); });
  if (splits.folders.empty()) {
    add_folders(folders, {}, members, list);
    return list;
  }
  for (const auto& [folder, pictures] : folders) {
    if (!path_behind(splits.below, folder)) continue;
    for (const std::size_t i : pictures) list.skipped[kBesideClasses].push_back(members[i].name);
  }
  skip_other_folders(folders_below(folders, splits.below), splits, list);
  std::vector<PackList> lists(splits.folders.size());
  for (std::size_t i = 0; i < lists.size(); ++i)
    add_folders(folders, splits.below / splits.folders[i].name, members, lists[i]);
  join_splits(lists, splits.folders, list);
  return list;
}

}  // namespace

Pictures open_archives(const std::vector<Path>& files) {
  auto store = std::make_unique<ArchiveStore>(files);
  Pictures pictures;
  pictures.list = has_labels_by_sample(store->archives) ? list_samples(store->archives) : list_folders(store->archives);
  pictures.list.root = files.front();
  pictures.store = std::move(store);
  return pictures;
}

std::unique_ptr<PictureStore> make_archive_store(const std::vector<Path>& files, PackList& list) {
  auto store = std::make_unique<ArchiveStore>(files);
  for (PackItem& item : list.items) {
    const auto place = store->archives.find(item.file);
    if (!place) throw DataError(fmt::format("{}: holds no {}", files.front().string(), item.file));
    item.place = *place;
  }
  return store;
}

}  // namespace dtrain::data
