// Pictures in archives: WebDataset's groups of files with one name and several endings, or folders as classes.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

#include "archive/safe_names.hpp"
#include "checked_labels.hpp"
#include "pictures.hpp"
#include "split_folders.hpp"

namespace dtrain::data {
namespace {

// PackItem::place of a picture that no archive holds.
constexpr std::uint64_t kNoPlace = UINT64_MAX;

class ArchiveStore : public PictureStore {
 public:
  explicit ArchiveStore(const std::vector<Path>& files) : archives(files), name_(files.front().string()) {}
  SourceBytes read(const PackItem& item) const override {
    if (item.place == kNoPlace) throw DataError(fmt::format("{}: holds no {}", name_, item.file));
    return with_content(archives.open(item.place));
  }
  std::string stamp(const PackItem& item) const override {
    return item.place == kNoPlace ? "?" : archives.stamp(item.place);
  }

  const Archives archives;

 private:
  const std::string name_;
};

// A name without what follows the first dot behind the last "/": what the files of one sample share.
std::string_view key_of(std::string_view name) {
  const std::size_t file = name.rfind('/') + 1;
  return name.substr(0, name.find('.', file));
}

enum class Part { picture, number, document, other };

Part part_of(std::string_view name) {
  if (is_hidden_path(name)) return Part::other;
  if (name.ends_with(".cls")) return Part::number;
  if (name.ends_with(".json")) return Part::document;
  return is_picture(name) ? Part::picture : Part::other;
}

// 0000.png is the picture of its sample; 0000.seg.png beside it is a mask or another part of it.
bool names_sample(std::string_view picture) { return picture.rfind('.') == key_of(picture).size(); }

float label_in(const SourceBytes& file, double number) try {
  return stored_label(number);
} catch (const DataError& error) {
  throw DataError(fmt::format("{}: {}", file.name, error.what()), error.hint());
}

std::optional<float> number_in(const SourceBytes& file) {
  if (const auto label = parse_number(trim(text_of(file.bytes)))) return label_in(file, *label);
  throw DataError(fmt::format("{}: is no number", file.name), "a .cls file holds the label alone");
}

// Documents may also say other things.
std::optional<float> label_in_document(const SourceBytes& file) {
  const Json document = Json::parse(text_of(file.bytes), file.name);
  const Json* label = document.is_object() ? document.find("label") : nullptr;
  if (!label || !label->is_number()) return std::nullopt;
  return label_in(file, label->as_number());
}

// Samples of different archives may have the same name.
std::string sample_of(const ArchiveMember& member) { return fmt::format("{}/{}", member.archive, key_of(member.name)); }

struct SamplePicture {
  std::uint64_t place = kNoPlace;  // the member; kNoPlace: several pictures have two endings, and none has one
  bool has_one_ending = false;     // names_sample()
};
using Samples = std::unordered_map<std::string, SamplePicture>;

Samples find_samples(const Archives& archives) {
  const auto& members = archives.members();
  Samples samples;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (part_of(members[i].name) != Part::picture) continue;
    const bool has_one_ending = names_sample(members[i].name);
    const auto [found, is_new] = samples.emplace(sample_of(members[i]), SamplePicture{i, has_one_ending});
    SamplePicture& sample = found->second;
    if (!is_new && !sample.has_one_ending) sample = {has_one_ending ? i : kNoPlace, has_one_ending};
  }
  return samples;
}

// By sample. What .cls says counts more. Files beside no picture label nothing. One that cannot be read is an error
// only where the archive has labels, or a .cls file beside most of its pictures: in folders of classes, documents are
// notes of other programs, and .cls files are classes of LaTeX.
std::unordered_map<std::string, float> read_labels(const Archives& archives, const Samples& samples) {
  const auto& members = archives.members();
  std::unordered_map<std::string, float> labels;
  std::exception_ptr unread;  // the first one that is
  std::size_t numbers = 0;    // .cls files beside pictures
  const auto read = [&](Part part, std::size_t i) -> std::optional<float> {
    try {
      const SourceBytes file = archives.open(i);
      return part == Part::number ? number_in(file) : label_in_document(file);
    } catch (const DataError&) {
      if (!unread) unread = std::current_exception();
      return std::nullopt;
    }
  };
  for (const Part part : {Part::number, Part::document}) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (part_of(members[i].name) != part) continue;
      const std::string sample = sample_of(members[i]);
      if (!samples.contains(sample) || (part == Part::document && labels.contains(sample))) continue;
      if (part == Part::number) ++numbers;
      if (const auto label = read(part, i)) labels[sample] = *label;
    }
  }
  if (unread && (!labels.empty() || 2 * numbers > samples.size())) std::rethrow_exception(unread);
  return labels;
}

PackList list_samples(const Archives& archives, const Samples& samples,
                      const std::unordered_map<std::string, float>& labels) {
  const auto& members = archives.members();
  PackList list;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!is_picture(members[i].name)) continue;
    const std::string sample = sample_of(members[i]);
    const auto label = labels.find(sample);
    if (is_hidden_path(members[i].name)) {
      list.skipped[kHidden].push_back(members[i].name);
    } else if (samples.at(sample).place != i) {
      list.skipped["another part of a sample"].push_back(members[i].name);
    } else if (label == labels.end()) {
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
    const bool is_hidden = is_hidden_path(name);
    if (!is_picture(name)) {
      if (!is_hidden && name.has_filename()) list.skipped[skipped_by_ending(name)].push_back(name.string());
    } else if (is_hidden) {
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
PackList list_folders(const Path& source, const Archives& archives) {
  const auto& members = archives.members();
  PackList list;
  const MembersByFolder folders = pictures_by_folder(members, list);
  const SplitFolders splits = find_splits(source, [&](const Path& below) { return folders_below(folders, below); });
  if (splits.folders.empty()) {
    add_folders(folders, {}, members, list);
    settle_classes(source, list.classes);
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
  const Samples samples = find_samples(store->archives);
  const auto labels = read_labels(store->archives, samples);
  pictures.list =
      labels.empty() ? list_folders(files.front(), store->archives) : list_samples(store->archives, samples, labels);
  pictures.list.root = files.front();
  pictures.store = std::move(store);
  return pictures;
}

std::unique_ptr<PictureStore> make_archive_store(const std::vector<Path>& files, PackList& list) {
  auto store = std::make_unique<ArchiveStore>(files);
  std::size_t lost = 0;
  for (PackItem& item : list.items) {
    const auto place = store->archives.find(item.file);
    item.place = place.value_or(kNoPlace);
    lost += place ? 0 : 1;
  }
  if (lost > 0 && lost == list.items.size())
    throw DataError(fmt::format("{}: holds no {}", files.front().string(), list.items.front().file));
  return store;
}

}  // namespace dtrain::data
