#include "pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>

#include "codec/cifar_records.hpp"
#include "codec/idx_array.hpp"
#include "pack_sources.hpp"

namespace dtrain::data {
namespace {

struct Name {
  PictureFormat format;
  std::string_view name;
};
constexpr std::array<Name, 9> kNames{{{PictureFormat::automatic, "auto"},
                                      {PictureFormat::folder, "folder"},
                                      {PictureFormat::list, "list"},
                                      {PictureFormat::coco, "coco"},
                                      {PictureFormat::archive, "archive"},
                                      {PictureFormat::cifar10, "cifar10"},
                                      {PictureFormat::cifar100, "cifar100"},
                                      {PictureFormat::idx, "idx"},
                                      {PictureFormat::records, "rec"}}};

class FolderStore : public PictureStore {
 public:
  explicit FolderStore(Path root) : root_(std::move(root)) {}
  SourceBytes read(const PackItem& item) const override {
    const Path file = root_ / item.file;
    if (const std::string why = lost_link(file); !why.empty()) throw DataError(why);
    return with_content(map_source(file));
  }
  std::string stamp(const PackItem& item) const override { return file_stamp(root_ / item.file); }

 private:
  Path root_;
};

PackList list_labelled(const PackOptions& options) {
  const Path& folder = options.sources.front();
  if (!std::filesystem::is_directory(folder)) {
    throw SettingError("labels", fmt::format("names files of a folder, and {} is none", folder.string()),
                       "name the folder to which the paths in the CSV file are relative");
  }
  PackList list = parse_labels(read_file(*options.labels), *options.labels, folder);
  for (const PackItem& item : list.items) {
    std::error_code error;
    if (!std::filesystem::exists(folder / item.file, error)) list.missing.push_back(item.file);
  }
  if (list.missing.size() == list.items.size() && !list.items.empty()) {
    throw DataError(fmt::format("{}: none of the files that it names is in {}; the first: {}", options.labels->string(),
                                folder.string(), list.missing.front()),
                    "the paths in it are relative to this folder");
  }
  count_unlabelled(list);
  return list;
}

Pictures open_files(const PackOptions& options) {
  Pictures pictures;
  pictures.list = options.labels
                      ? list_labelled(options)
                      : list_images(options.sources.front(), options.root, options.coco_labels, options.format);
  if (is_archive(options.root) && std::filesystem::is_regular_file(options.root)) {
    pictures.store = make_archive_store({options.root}, pictures.list);
  } else {
    pictures.store = make_folder_store(pictures.list.root);
  }
  return pictures;
}

PictureFormat cifar_format(const Path& file) {
  const std::uint64_t size = std::filesystem::file_size(file);
  const bool ten = size % cifar_record(1) == 0, hundred = size % cifar_record(2) == 0;
  if (ten != hundred) return ten ? PictureFormat::cifar10 : PictureFormat::cifar100;
  throw UsageError(
      fmt::format("{}: {} of CIFAR", file.string(), ten ? "could be either version" : "is no file"),
      "setting 'format' cifar10 or setting 'format' cifar100 says which, setting 'format' what else it is");
}

PictureFormat format_of(const Path& source) {
  if (std::filesystem::is_directory(source)) return PictureFormat::folder;
  if (const auto format = picture_format_by_name(source)) return *format;
  const std::string ending = source.extension().string();
  if (!std::filesystem::is_regular_file(source) || ending == ".rec") return PictureFormat::records;
  if (ending == ".bin") return cifar_format(source);
  if (is_idx(source)) return PictureFormat::idx;
  throw UsageError(fmt::format("{}: not known by its name or its first bytes", source.string()),
                   "setting 'format' says what it is");
}

bool is_of_files(PictureFormat format) {
  return format != PictureFormat::automatic && format != PictureFormat::folder && format != PictureFormat::records;
}

void refuse_folders(const PackOptions& options) {
  const auto folder =
      std::ranges::find_if(options.sources, [](const Path& each) { return std::filesystem::is_directory(each); });
  if (folder == options.sources.end()) return;
  throw UsageError(fmt::format("{}: is a folder, and setting 'format' {} names a file", folder->string(),
                               std::ranges::find(kNames, options.format, &Name::format)->name),
                   "leave setting 'format' out");
}

// The one format of all the sources.
PictureFormat common_format(const PackOptions& options) {
  if (is_of_files(options.format)) refuse_folders(options);
  if (options.format != PictureFormat::automatic) return options.format;
  const PictureFormat first = format_of(options.sources.front());
  for (const Path& source : options.sources) {
    if (format_of(source) == first) continue;
    throw UsageError(fmt::format("{} and {} are of different kinds", options.sources.front().string(), source.string()),
                     "pack them one after another");
  }
  return first;
}

Pictures open_as(PictureFormat format, const PackOptions& options) {
  switch (format) {
    case PictureFormat::archive:
      return open_archives(options.sources);
    case PictureFormat::cifar10:
      return open_cifar(options.sources, 1);
    case PictureFormat::cifar100:
      return open_cifar(options.sources, 2);
    case PictureFormat::idx:
      return open_idx(options.sources);
    case PictureFormat::records:
      return open_records(options);
    default:
      break;
  }
  if (options.sources.size() == 1) return open_files(options);
  throw UsageError("folders, lists and COCO files are packed one at a time", "name one of them");
}

}  // namespace

std::vector<std::string> picture_format_names() {
  std::vector<std::string> names;
  for (const Name& each : kNames) names.emplace_back(each.name);
  return names;
}

std::optional<PictureFormat> parse_picture_format(std::string_view name) {
  for (const Name& each : kNames) {
    if (each.name == name) return each.format;
  }
  return std::nullopt;
}

std::optional<PictureFormat> picture_format_by_name(const Path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".lst") return PictureFormat::list;
  if (ending == ".json") return PictureFormat::coco;
  if (is_archive(file)) return PictureFormat::archive;
  return std::nullopt;
}

std::string lost_link(const Path& file) {
  std::error_code none, error;
  if (!std::filesystem::is_symlink(file, none) || std::filesystem::exists(std::filesystem::status(file, error)))
    return {};
  const bool is_hidden = error == std::errc::permission_denied;
  return is_hidden ? fmt::format("cannot follow the link: {}", error.message()) : "the link leads nowhere";
}

SourceBytes with_content(SourceBytes file) {
  if (file.bytes.empty()) throw DataError("the file is empty");
  return file;
}

std::unique_ptr<PictureStore> make_folder_store(const Path& root) { return std::make_unique<FolderStore>(root); }

PackList list_images(const Path& source, const Path& root, CocoLabels labels, PictureFormat format) {
  const bool is_named = format == PictureFormat::list || format == PictureFormat::coco;
  if (!is_named && std::filesystem::is_directory(source)) return list_folder(source);
  if (!std::filesystem::exists(source)) {
    throw DataError(fmt::format("{}: no such folder or file", source.string()),
                    "name a folder of class folders, a .lst file or a COCO JSON file");
  }
  const Path beside = root.empty() ? source.parent_path() : root;
  const auto known = is_named ? format : picture_format_by_name(source);
  if (known == PictureFormat::list) return parse_list(read_file(source), source, beside);
  if (known == PictureFormat::coco) return parse_coco(read_file(source), source, beside, labels);
  throw UsageError(fmt::format("{}: neither a folder nor a .lst or .json file", source.string()));
}

Pictures open_pictures(const PackOptions& options) {
  DTRAIN_CHECK(!options.sources.empty(), "pictures come from somewhere");
  Pictures pictures = open_as(options.labels ? PictureFormat::folder : common_format(options), options);
  pictures.opened.insert(pictures.opened.end(), options.sources.begin(), options.sources.end());
  if (options.labels) pictures.opened.push_back(*options.labels);
  return pictures;
}

}  // namespace dtrain::data
