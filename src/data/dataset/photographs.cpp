#include "photographs.hpp"

#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>

#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

constexpr const char* kCocoHome = "http://images.cocodataset.org";
constexpr std::array<const char*, 3> kYears{"2017", "2014", ""};  // the last: a subset of the user
struct CocoFile {
  const char* folder;  // at home; others have all files in one
  PublishedFile file;
};
constexpr std::array<CocoFile, 3> kFiles{{{"annotations", {"annotations_trainval2017.zip", 0, ""}},
                                          {"zips", {"val2017.zip", 0, ""}},
                                          {"zips", {"train2017.zip", 0, ""}}}};

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
  pictures.store = is_archive(photos) ? make_archive_store({photos}, pictures.list) : make_folder_store(photos);
  return pictures;
}

}  // namespace

Path folder_or_archive(const Path& from, const std::string& folder, const std::string& archive) {
  if (std::filesystem::is_directory(from / folder)) return from / folder;
  return std::filesystem::is_regular_file(from / archive) ? from / archive : Path();
}

Photographs open_coco(const PrepareOptions& options) {
  const bool home = options.from.empty();
  if (home || is_url(options.from)) {
    for (const auto& [folder, file] : kFiles) {
      fetch(file, home ? fmt::format("{}/{}", kCocoHome, folder) : options.from, options);
    }
  }
  const CocoFolder coco = find_coco(home || is_url(options.from) ? options.out : Path(options.from));
  return {coco_split(coco, "train", options.coco_labels), coco_split(coco, "val", options.coco_labels)};
}

}  // namespace dtrain::data
