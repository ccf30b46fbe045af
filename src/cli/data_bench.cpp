#include <fmt/format.h>

#include <chrono>

#include "command.hpp"
#include "cpus.hpp"
#include "data_options.hpp"
#include "loader_speed.hpp"

namespace dtrain::cli {
namespace {

struct BenchCommand {
  DataOptions data;
  Path file;
  int batch_size = 128;
  int seconds = 3;
  std::uint64_t seed = 0;
};

void bind(OptionSet& set, BenchCommand& options) {
  options.data.threads = usable_cpus();
  set.group("What").add("FILE", options.file, "record file (.rec)").required = true;
  set.add("--batch-size", options.batch_size, "N", "samples of one batch", at_least(1));
  set.add("--data-nthreads", options.data.threads, "N", "threads that decode and augment", at_least(1));
  set.add("--seconds", options.seconds, "N", "how long to measure", at_least(1));
  set.add("--seed", options.seed, "N", "order and augmentation depend on it");
  bind_image(set, options.data);
  bind_augmentation(set, options.data);
}

ExitCode act(const BenchCommand& options, const OptionSet&, Console& console) {
  require_records(options.file);
  data::Loader loader(options.file, training_loader(options.data, options.seed));
  const LoaderSpeed speed = measure_loader(loader, options.batch_size, std::chrono::seconds(options.seconds));
  if (console.json()) {
    console.answer_json(Json::object({{"schema", "dtrain.data-bench/1"},
                                      {"file", options.file.string()},
                                      {"threads", options.data.threads},
                                      {"batch_size", options.batch_size},
                                      {"samples", speed.samples},
                                      {"seconds", speed.seconds},
                                      {"samples_per_second", speed.rate()}}));
  } else {
    console.answer(fmt::format("{:.0f} samples/sec on {} threads ({} samples in {:.2f} s)", speed.rate(),
                               options.data.threads, speed.samples, speed.seconds));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_bench() {
  auto command = make_command<BenchCommand>("data bench", "how fast records are read, decoded and augmented", act);
  command->examples = {"dtrain data bench d/shapes_train.rec --data-nthreads 1"};
  command->see_also = {"bench train", "data ls"};
  return command;
}

}  // namespace dtrain::cli
