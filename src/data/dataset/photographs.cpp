#include "photographs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/data/copy.hpp>

#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

constexpr const char* kCocoHome = "http://images.cocodataset.org";
constexpr std::array<const char*, 3> kYears{"2017", "2014", ""};  // the last: a subset of the user
constexpr std::array<CocoFile, 3> kFiles{
    {{"annotations",
      {"annotations_trainval2017.zip", 252907541, "113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268"}},
     {"zips", {"val2017.zip", 815585330, "4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05"}},
     {"zips", {"train2017.zip", 19336861798, "69a8bb58ea5f8f99d24875f21416de2e9ded3178e903f1f7603e283b9e06d929"}}}};

// Where the annotations of both splits are.
struct CocoFolder {
  Path from;
  std::string year;
  Path json(const std::string& split) const {
    return from / "annotations" / fmt::format("instances_{}{}.json", split, year);
  }
  Path archive() const { return from / fmt::format("annotations_trainval{}.zip", year); }
};

CocoFolder find_coco(const Path& from) {
  for (const char* year : kYears) {
    CocoFolder folder{from, year};
    if (std::filesystem::exists(folder.json("train")) || std::filesystem::exists(folder.archive())) return folder;
  }
  throw DataError(
      fmt::format("{}: no COCO here: looked for {} and annotations/instances_train2017.json", from.string(),
                  kFiles.front().file.name),
      fmt::format("name the folder with the files, or leave setting 'from' away to download 20 GB from {}", kCocoHome));
}

Pictures coco_split(const CocoFolder& coco, const std::string& split, CocoLabels labels) {
  const Path photos = folder_or_archive(coco.from, split + coco.year, split + coco.year + ".zip");
  if (photos.empty()) {
    throw DataError(fmt::format("{}: neither the folder {}{} nor {}{}.zip is here", coco.from.string(), split,
                                coco.year, split, coco.year),
                    "copy or download it to the other COCO files");
  }
  Path json = coco.json(split);
  SourceBytes text;
  if (std::filesystem::exists(json)) {
    text = map_source(json);
  } else {
    const Archives archive({coco.archive()});
    const auto member = archive.find(json.filename().string());
    if (!member) throw DataError(fmt::format("{}: holds no {}", coco.archive().string(), json.filename().string()));
    text = archive.open(*member);
  }
  Pictures pictures;
  pictures.list = parse_coco(text_of(text.bytes), text.name, photos, labels);
  pictures.store =
      is_archive(photos) ? make_archive_store({photos}, pictures.list) : make_folder_store(pictures.list.root);
  return pictures;
}

// Every file of the archive is below the folder with its size.
bool holds_all(const Path& folder, const Archives& archive) {
  return std::ranges::all_of(archive.members(), [&](const ArchiveMember& member) {
    std::error_code missing;
    return std::filesystem::file_size(folder / member.name, missing) == member.size && !missing;
  });
}

// Nothing would be unpacked from the user's folder, whose folders programs read as they are. The archives that are in
// it are unpacked to options.out even where a folder of theirs is beside them.
bool is_unpacked_already(const CocoFolder& coco, const PrepareOptions& options) {
  const Path train = coco.from / ("train" + coco.year), val = coco.from / ("val" + coco.year);
  for (const Path& archive : {Path(train.string() + ".zip"), Path(val.string() + ".zip"), coco.archive()}) {
    if (std::filesystem::is_regular_file(archive)) return false;
  }
  for (const Path& folder : {train, val, coco.from / "annotations"}) {
    if (!std::filesystem::is_directory(folder)) return false;
  }
  std::error_code missing;
  return !std::filesystem::equivalent(coco.from, options.out, missing);
}

// The folder of that name: made of the archive in options.out, unless it is there; where there is no archive, the one
// that the user has unpacked.
Path unpacked(const Path& from, const std::string& name, const Path& archive, const PrepareOptions& options) {
  if (!std::filesystem::is_regular_file(archive)) {
    if (std::filesystem::is_directory(from / name)) return from / name;
    throw DataError(
        fmt::format("{}: neither the folder {} nor {} is here", from.string(), name, archive.filename().string()),
        "copy or download it to the other COCO files");
  }
  if (holds_all(options.out, Archives({archive}))) return options.out / name;
  UnpackOptions unpacking{.from = archive.string(), .out = options.out};
  if (options.progress) {
    unpacking.progress = [&](std::uint64_t done, std::uint64_t total) {
      options.progress(archive.filename().string(), done, total, "bytes");
    };
  }
  net::ObjectStore store;
  unpack_archive(store, unpacking);
  return options.out / name;
}

std::uint64_t count_pictures(const Path& folder) {
  std::error_code error;
  std::uint64_t pictures = 0;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    pictures += is_picture(file->path());
  if (error) throw DataError(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  return pictures;
}

}  // namespace

Path folder_or_archive(const Path& from, const std::string& folder, const std::string& archive) {
  if (std::filesystem::is_directory(from / folder)) return from / folder;
  return std::filesystem::is_regular_file(from / archive) ? from / archive : Path();
}

Path fetch_coco(std::span<const CocoFile> files, const PrepareOptions& options) {
  const bool home = options.from.empty();
  if (!home && !is_url(options.from)) return options.from;
  for (const auto& [folder, file] : files)
    fetch(file, home ? fmt::format("{}/{}", kCocoHome, folder) : options.from, options);
  return options.out;
}

Photographs open_coco(const PrepareOptions& options) {
  const CocoFolder coco = find_coco(fetch_coco(kFiles, options));
  return {coco_split(coco, "train", options.coco_labels), coco_split(coco, "val", options.coco_labels)};
}

PrepareResult unpack_coco(const PrepareOptions& options) {
  const bool is_of_user = !options.from.empty() && !is_url(options.from);
  if (is_of_user && is_unpacked_already(find_coco(options.from), options))
    throw UsageError(fmt::format("{}: is unpacked already", options.from), "use it as it is: nothing would be written");
  make_folder(options.out);
  remove_abandoned_temporaries(options.out, options.name);
  const CocoFolder coco = find_coco(fetch_coco(kFiles, options));
  PrepareResult result;
  result.of_folders = true;
  result.train = unpacked(coco.from, "train" + coco.year, coco.from / ("train" + coco.year + ".zip"), options);
  result.val = unpacked(coco.from, "val" + coco.year, coco.from / ("val" + coco.year + ".zip"), options);
  unpacked(coco.from, "annotations", coco.archive(), options);
  result.train_records = count_pictures(result.train);
  result.val_records = count_pictures(result.val);
  return result;
}

}  // namespace dtrain::data
