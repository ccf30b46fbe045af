#include "train_work.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/gpu_choice.hpp"

namespace dtrain::job {

// A worker that was rank 0 before may report its last checkpoint after the next rank 0 reported a newer one. Names of
// checkpoints without their ending are in the order of their age.
void LastReports::on_checkpoint(const Path& file) {
  if (file.extension() != ".safetensors") return;
  lost.clear();
  const Path manifest = Path(file).replace_extension(".json");
  if (manifest.stem() < newest_.stem()) return;
  newest_ = manifest;
  write_file_atomic(folder_.latest(), manifest.string());
}

TrainWork::TrainWork(TrainRun run, const JobFolder& folder, Reporter& reporter)
    : run_(std::move(run)),
      folder_(folder),
      reporter_(reporter),
      watch_(reporter, run_),
      last_(folder),
      steps_(folder.steps()),
      news_(watch_.observers()) {
  watch_.observers().add(last_);
  watch_.observers().add(steps_);  // last, so that a full disk affects no other observer
}

void TrainWork::adjust(elastic::Policy& policy) const {
  const config::TrainOptions& options = run_.options;
  if (!options.job.is_per_worker()) {
    policy.step_size.constant =
        options.job.is_asynchronous() ? config::batch_of_worker(options.compute) : options.compute.samples_per_step();
    return;
  }
  policy.step_size.per_worker = config::batch_of_worker(options.compute);
  const bool follows = options.job.rate != train::ElasticRate::none;
  policy.step_size.rate_batch = follows ? options.compute.samples_per_step() : 0;
}

int TrainWork::slots() const { return config::workers_of_host(run_.options.compute); }

void TrainWork::begin(int workers) {
  watch_.begin(workers);
  std::filesystem::remove(folder_.latest());
  steps_.begin(run_.options.resume);
}

void TrainWork::show_output(const std::string& worker, std::string_view line) {
  reporter_.note(fmt::format("[{}] {}", worker, line));
}

void TrainWork::end() {
  steps_.end();
  if (!last_.lost.empty()) throw Error(last_.lost, what_next());
  train::TrainResult result;
  const bool may_end_early = run_.options.early_stop > 0 && last_.evaluation;
  result.cursor.epoch = may_end_early ? last_.evaluation->epoch + 1 : static_cast<std::uint32_t>(run_.options.epochs);
  result.evaluation = last_.evaluation;
  watch_.end(result);
}

std::string TrainWork::first_signal_words() const {
  return "Stopping: the workers finish their step and save; once more ends everything at once";
}

std::string TrainWork::what_next() const {
  return keeps() ? "the same command with --resume goes on from the last checkpoint"
                 : "give --model-prefix to keep what was trained";
}

}  // namespace dtrain::job
