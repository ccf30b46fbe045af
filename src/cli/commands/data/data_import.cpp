#include "cli/command.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

struct ImportCommand : PackCommand {
  std::string format = "auto";
};

void bind(config::OptionSet& set, ImportCommand& options) {
  options.encodings.insert(options.encodings.begin(), "keep");
  options.encoding = "keep";
  set.group("Options");
  set.add_paths("SOURCE", options.pack.sources,
                "CIFAR binary files, IDX images and labels, .tar or .zip archives, or record files")
      .required = true;
  set.add_choice("--format", options.format, data::picture_format_names(),
                 "format of SOURCE; auto detects it from name and content");
  bind_pack(set, options);
}

ExitCode act(const ImportCommand& given, const config::OptionSet& set, Reporter& reporter) {
  ImportCommand options = given;
  options.pack.format = data::parse_picture_format(options.format).value();
  return pack_pictures(options, set, reporter);
}

}  // namespace

std::unique_ptr<Command> make_data_import() {
  auto command = make_command<ImportCommand>("data import", "convert other data files into record files", act);
  command->examples = {"dtrain data import data_batch_1.bin data_batch_2.bin --out c",
                       "dtrain data import train-images-idx3-ubyte.gz --out m --encoding png",
                       "dtrain data import shard-000000.tar shard-000001.tar --out w --resize 256",
                       "dtrain data import p --out q --shards 16 --shuffle"};
  command->see_also = {"data pack", "data prepare", "data verify"};
  return command;
}

}  // namespace dtrain::cli
