#include <fmt/format.h>

#include <chrono>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>

#include "bench/loader_speed.hpp"
#include "cli/command.hpp"
#include "config/data_options.hpp"

namespace dtrain::cli {
namespace {

struct BenchCommand {
  config::DataOptions data;
  Path files;
  int batch_size = 128;
  int seconds = 3;
  std::uint64_t seed = 0;
};

void bind(config::OptionSet& set, BenchCommand& options) {
  options.data.threads = usable_cpus();
  set.group("Options").add("FILES", options.files, "record files: a prefix, a pattern, or names separated by commas");
  set.add("--data-train", options.files, "same as FILES, under the name that `train` uses").same_as = "FILES";
  set.add("--batch-size", options.batch_size, "N", "samples per batch", config::at_least(1));
  config::bind_data_threads(set, options.data);
  config::Option& threads =
      set.add("--threads", options.data.threads, "N", "short name of --data-nthreads", data::kLoaderRanges.threads);
  threads.by_machine = true;
  threads.same_as = "data-nthreads";
  config::bind_prefetch(set, options.data);
  config::bind_cache_decoded(set, options.data);
  set.add("--seconds", options.seconds, "N", "duration of the measurement in seconds", config::at_least(1));
  set.add("--seed", options.seed, "N", "random seed for order and augmentation");
  config::bind_image_of_any_class(set, options.data);
  config::bind_augmentation(set, options.data);
}

// A file whose first record cannot be read is the loader's to refuse.
void refuse_boxes(const Path& files) {
  data::Record record;
  try {
    data::RecordSet(data::find_records(files.string())).read(0, record);
  } catch (const DataError&) {
    return;
  }
  if (!data::has_boxes(record.labels)) return;
  const std::string shown = data::shown_files(files);
  throw DataError(
      fmt::format("{}: its records have boxes, and data bench measures the records of classifiers", shown),
      fmt::format("measure a detector on them: dtrain bench train --network retinanet --data-train {}", shown));
}

ExitCode act(const BenchCommand& options, const config::OptionSet&, Reporter& reporter) {
  if (options.files.empty()) {
    throw UsageError("data bench: FILES is missing", "for example: dtrain data bench d/shapes_train.rec");
  }
  config::require_records(options.files);
  refuse_boxes(options.files);
  data::LoaderOptions loading = training_loader(options.data, options.seed);
  loading.names_bad_limit = false;
  const std::uint64_t buffers = data::buffer_bytes(loading, options.batch_size);
  data::Loader loader(options.files, loading);
  const bench::LoaderSpeed speed =
      bench::measure_loader(loader, options.batch_size, std::chrono::seconds(options.seconds));
  const data::KeptPictures kept = loader.kept_pictures();
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.data-bench/1"},
                                       {"file", data::shown_files(options.files)},
                                       {"threads", options.data.threads},
                                       {"batch_size", options.batch_size},
                                       {"prefetch", options.data.prefetch},
                                       {"buffer_bytes", buffers},
                                       {"kept_pictures", kept.pictures},
                                       {"kept_bytes", kept.bytes},
                                       {"samples", speed.samples},
                                       {"seconds", speed.seconds},
                                       {"samples_per_second", speed.rate()}}));
  } else {
    reporter.answer(fmt::format("{:.0f} samples/sec on {} threads ({} samples in {:.2f} s); batches take up to {}{}",
                                speed.rate(), options.data.threads, speed.samples, speed.seconds, format_bytes(buffers),
                                loading.decoded_cache > 0
                                    ? fmt::format(", {} decoded images {}", kept.pictures, format_bytes(kept.bytes))
                                    : ""));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_bench() {
  auto command =
      make_command<BenchCommand>("data bench", "measure how fast records are read, decoded and augmented", act);
  command->first_options = {"batch-size", "image-shape", "data-nthreads", "seconds"};
  command->examples = {"dtrain data bench d/shapes_train.rec --data-nthreads 1"};
  command->see_also = {"bench train", "data ls"};
  return command;
}

}  // namespace dtrain::cli
