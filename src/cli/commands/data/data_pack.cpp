#include "cli/command.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

struct PackFiles : PackCommand {
  Path source;
  std::string coco_labels = "largest";
};

void bind(config::OptionSet& set, PackFiles& options) {
  set.group("Options");
  set.add("SOURCE", options.source, "folder with one sub-folder per class, .lst file, or COCO JSON file").required =
      true;
  set.add("--root", options.pack.root,
          "folder or archive to which the names in SOURCE are relative (default the folder that holds SOURCE)");
  set.add_choice("--coco-labels", options.coco_labels, data::coco_label_names(),
                 "labels of a COCO picture: the category of its largest box, or all boxes for detection");
  set.add("--labels", options.pack.labels,
          "CSV file with a path and a label in each row, for a SOURCE whose folders are not the classes; paths are "
          "relative to SOURCE");
  bind_pack(set, options);
}

ExitCode act(const PackFiles& given, const config::OptionSet&, Reporter& reporter) {
  PackCommand options = given;
  options.pack.sources = {given.source};
  // What is not there is no prefix of record files either, which is what import would take it for.
  if (!std::filesystem::exists(given.source)) options.pack.format = data::PictureFormat::folder;
  options.pack.coco_labels = data::parse_coco_labels(given.coco_labels).value();
  return pack_pictures(options, reporter);
}

}  // namespace

std::unique_ptr<Command> make_data_pack() {
  auto command = make_command<PackFiles>("data pack", "pack pictures into record files, like MXNet's im2rec", act);
  command->examples = {"dtrain data pack photos --out p --resize 256",
                       "dtrain data pack photos --out p --train-ratio 0.7 --test-ratio 0.1 --shards 4",
                       "dtrain data pack instances_train.json --root train --out coco --resize 480"};
  command->see_also = {"data import", "data show", "data verify"};
  return command;
}

}  // namespace dtrain::cli
