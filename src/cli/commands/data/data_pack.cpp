#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "cli/command.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

struct PackFiles : PackCommand {
  Path source, coco;
  std::string coco_labels = "largest";
};

void bind(config::OptionSet& set, PackFiles& options) {
  set.group("Options");
  set.add("SOURCE", options.source,
          "folder with one sub-folder per class, .tar, .tar.gz or .zip archive of one, .lst file, or COCO JSON file")
      .required = true;
  set.add("--root", options.pack.root,
          "folder or archive to which the names in SOURCE are relative (default the folder that holds SOURCE)");
  set.add("--coco", options.coco,
          "COCO JSON file with boxes, masks and classes of the pictures in SOURCE, a folder or archive, for training a "
          "detector");
  set.add_choice("--coco-labels", options.coco_labels, data::coco_label_names(),
                 "labels of a COCO picture: the category of its largest box, or all boxes for detection. With --coco "
                 "the default is boxes");
  set.add("--labels", options.pack.labels,
          "CSV file with a path and a label in each row, for a SOURCE whose folders are not the classes; paths are "
          "relative to SOURCE");
  bind_pack(set, options);
}

// The pictures of SOURCE with the boxes of the JSON file.
void take_coco(const PackFiles& given, const config::OptionSet& set, data::PackOptions& pack) {
  for (const char* other : {"root", "labels"}) {
    if (!set.chosen(other)) continue;
    throw UsageError(fmt::format("--{}: --coco says already where pictures and labels are", other), "leave it out");
  }
  if (!std::filesystem::exists(given.source))
    throw DataError(fmt::format("{}: no such folder or archive", given.source.string()),
                    "name the folder or archive with the pictures of the JSON file");
  if (!std::filesystem::is_regular_file(given.coco))
    throw DataError(fmt::format("{}: no such file", given.coco.string()), "name the JSON file with the boxes");
  pack.sources = {given.coco};
  pack.format = data::PictureFormat::coco;
  pack.root = given.source;
  if (!set.chosen("coco-labels")) pack.coco_labels = data::CocoLabels::boxes;
}

// Options about the pictures of a list, which other sources would ignore.
void refuse_options_of_lists(const PackFiles& given, const config::OptionSet& set) {
  const auto format = std::filesystem::is_directory(given.source) ? data::PictureFormat::folder
                                                                  : data::picture_format_by_name(given.source);
  const bool is_coco = format == data::PictureFormat::coco, is_list = is_coco || format == data::PictureFormat::list;
  if (set.chosen("root") && !is_list)
    throw UsageError(fmt::format("--root: {} holds its pictures itself", given.source.string()), "leave it out");
  if (set.chosen("coco-labels") && !is_coco) {
    throw UsageError(fmt::format("--coco-labels: {} is no COCO JSON file", given.source.string()),
                     "leave it out, or name the JSON file with --coco");
  }
}

void refuse_other_file(const Path& source) {
  if (!std::filesystem::is_regular_file(source) || data::picture_format_by_name(source)) return;
  throw UsageError(fmt::format("{}: is a file, and no .lst, COCO .json or archive", source.string()),
                   "name the folder of the class folders; other files: dtrain data import");
}

ExitCode act(const PackFiles& given, const config::OptionSet& set, Reporter& reporter) {
  PackCommand options = given;
  options.takes_labels = true;
  options.pack.sources = {given.source};
  // What is not there is no prefix of record files either, which is what import would take it for.
  if (!std::filesystem::exists(given.source)) options.pack.format = data::PictureFormat::folder;
  options.pack.coco_labels = data::parse_coco_labels(given.coco_labels).value();
  if (set.chosen("coco")) {
    take_coco(given, set, options.pack);
  } else {
    if (!options.pack.labels) refuse_other_file(given.source);
    if (std::filesystem::exists(given.source)) refuse_options_of_lists(given, set);
  }
  return pack_pictures(options, set, reporter);
}

}  // namespace

std::unique_ptr<Command> make_data_pack() {
  auto command = make_command<PackFiles>("data pack", "pack pictures into record files, like MXNet's im2rec", act);
  command->examples = {"dtrain data pack photos --out p --resize 256",
                       "dtrain data pack photos --out p --train-ratio 0.7 --test-ratio 0.1 --shards 4",
                       "dtrain data pack instances_train.json --root train --out coco --resize 480",
                       "dtrain data pack train2017 --coco annotations/instances_train2017.json --out coco_train"};
  command->see_also = {"data import", "data show", "data verify"};
  return command;
}

}  // namespace dtrain::cli
