#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/data/prepare.hpp>

#include "command.hpp"
#include "progress.hpp"

namespace dtrain::cli {
namespace {

struct PrepareCommand {
  std::string name;
  Path out = "data";
  std::string from;
  std::string encoding = "raw";
  std::uint64_t seed = 1;
  int train_count = 10000, val_count = 2000;
};

void bind(OptionSet& set, PrepareCommand& options) {
  set.group("Data set");
  set.add("NAME", options.name, "NAME", join(data::prepare_names(), ", ")).required = true;
  set.add("--out", options.out, "folder for NAME_train.rec, NAME_val.rec and their .idx files; made if missing");
  set.add("--from", options.from, "FOLDER|URL", "where the published files are; without it they are downloaded");
  set.add_choice("--encoding", options.encoding, data::encoding_names(), "how each image is stored");
  set.group("Only for shapes, the data set that dtrain draws itself");
  set.add("--seed", options.seed, "N", "what the drawing depends on");
  set.add("--train-count", options.train_count, "N", "training images", at_least(1));
  set.add("--val-count", options.val_count, "N", "validation images", at_least(1));
}

data::PrepareResult prepare_with_progress(const PrepareCommand& options, Console& console) {
  Progress progress(console);
  return data::prepare({.name = options.name,
                        .out = options.out,
                        .from = options.from,
                        .encoding = data::parse_encoding(options.encoding).value(),
                        .seed = options.seed,
                        .train_count = static_cast<std::uint32_t>(options.train_count),
                        .val_count = static_cast<std::uint32_t>(options.val_count),
                        .progress = [&](std::string_view what, std::uint64_t done, std::uint64_t total,
                                        std::string_view unit) { progress.show(what, done, total, unit); }});
}

Json document(const PrepareCommand& options, const data::PrepareResult& result) {
  const auto part = [](const Path& file, std::uint64_t records) {
    return Json::object({{"file", file.string()}, {"records", records}});
  };
  return Json::object({{"schema", "dtrain.data-prepare/1"},
                       {"name", options.name},
                       {"train", part(result.train, result.train_records)},
                       {"val", part(result.val, result.val_records)},
                       {"already_there", result.already_there}});
}

ExitCode act(const PrepareCommand& options, const OptionSet&, Console& console) {
  const data::PrepareResult result = prepare_with_progress(options, console);
  if (console.json()) {
    console.answer_json(document(options, result));
    return ExitCode::ok;
  }
  if (result.already_there) console.log("already complete, nothing was written");
  console.answer(fmt::format("{}  {} records", result.train.string(), result.train_records));
  console.answer(fmt::format("{}  {} records", result.val.string(), result.val_records));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_prepare() {
  auto command = make_command<PrepareCommand>("data prepare", "make the record files of a published data set", act);
  command->examples = {"dtrain data prepare shapes --out d", "dtrain data prepare cifar10 --out data",
                       "dtrain data prepare mnist --from /mnt/mnist --encoding png --out d"};
  command->see_also = {"data ls", "data verify", "train"};
  return command;
}

}  // namespace dtrain::cli
