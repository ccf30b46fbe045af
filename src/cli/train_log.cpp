#include "train_log.hpp"

#include <fmt/format.h>

#include <cmath>

namespace dtrain::cli {

TrainLog::TrainLog(Console& console, const TrainOptions& options, const nn::Graph& graph,
                   const backend::Executable& executable)
    : console_(console), options_(options), graph_(graph), executable_(executable), progress_(console) {}

void TrainLog::on_step(const train::StepReport& report) {
  add(report);
  const auto every = static_cast<std::uint64_t>(options_.disp_batches);
  if (report.step > 0 && report.step % every == 0) log_window(report);
  if (options_.monitor > 0 && (report.step + 1) % static_cast<std::uint64_t>(options_.monitor) == 0)
    log_tensors(report);
  progress_.show(fmt::format("Epoch[{}]", report.epoch), report.step + 1, report.steps, "steps",
                 fmt::format("loss {:.4f} accuracy {:.4f}", report.loss, report.accuracy));
}

void TrainLog::add(const train::StepReport& report) {
  window_.samples += report.samples;
  window_.correct += report.accuracy * report.samples;
  window_.top_k_correct += report.top_k_accuracy * report.samples;
  if (clock_runs_) {
    timed_samples_ += report.samples;
  } else {
    clock_ = Clock::now();
    clock_runs_ = true;
  }
}

// "Batch [20]" covers 21 batches of accuracy and 20 of time in the first line, as MXNet's Speedometer counts.
void TrainLog::log_window(const train::StepReport& report) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - clock_).count();
  std::string line = fmt::format("Epoch[{}] Batch [{}]\tSpeed: {:.2f} samples/sec\taccuracy={:.6f}", report.epoch,
                                 report.step, timed_samples_ / seconds, window_.correct / window_.samples);
  if (options_.top_k > 0) line += fmt::format("\t{}={:.6f}", top_k_name(), window_.top_k_correct / window_.samples);
  console_.log(line);
  window_ = {};
  timed_samples_ = 0;
  clock_ = now;
}

void TrainLog::on_epoch(const train::EpochReport& report) {
  console_.log(fmt::format("Epoch[{}] Train-accuracy={:.6f}", report.epoch, report.accuracy));
  if (options_.top_k > 0) {
    console_.log(fmt::format("Epoch[{}] Train-{}={:.6f}", report.epoch, top_k_name(), report.top_k_accuracy));
  }
  console_.log(fmt::format("Epoch[{}] Time cost={:.3f}", report.epoch, report.time.count()));
  window_ = {};
  timed_samples_ = 0;
  clock_runs_ = false;
}

void TrainLog::on_evaluation(const train::EvaluationReport& report) {
  console_.log(fmt::format("Epoch[{}] Validation-accuracy={:.6f}", report.epoch, report.accuracy));
  if (options_.top_k > 0) {
    console_.log(fmt::format("Epoch[{}] Validation-{}={:.6f}", report.epoch, top_k_name(), report.top_k_accuracy));
  }
}

void TrainLog::on_checkpoint(const Path& path) {
  last_checkpoint_ = path;
  console_.log(fmt::format("Saved checkpoint to \"{}\"", path.string()));
}

void TrainLog::on_warning(const std::string& text) { console_.warning(text); }

// MXNet's Monitor: the norm of each tensor over the square root of its size.
void TrainLog::log_tensors(const train::StepReport& report) const {
  const backend::ModelState state = executable_.read_state();
  for (const nn::TensorView& tensor : graph_.parameters) {
    double sum = 0;
    for (std::int64_t i = 0; i < tensor.size; ++i) {
      const double value = state.parameters[static_cast<std::size_t>(tensor.offset + i)];
      sum += value * value;
    }
    console_.log(fmt::format("Batch: {:7} {:30} {:.6g}", report.step, tensor.name,
                             std::sqrt(sum / static_cast<double>(tensor.size))));
  }
}

std::string TrainLog::top_k_name() const { return fmt::format("top_k_accuracy_{}", options_.top_k); }

}  // namespace dtrain::cli
