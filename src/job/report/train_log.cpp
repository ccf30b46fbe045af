#include "train_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dtrain::job {

TrainLog::TrainLog(Reporter& reporter, const config::TrainOptions& options)
    : reporter_(reporter), options_(options), progress_(reporter) {}

void TrainLog::on_step(const train::StepReport& report) {
  add(report);
  const auto every = static_cast<std::uint64_t>(std::max(1, options_.disp_batches / options_.local.steps));
  if (report.step > 0 && report.step % every == 0) log_window(report);
  progress_.show(fmt::format("Epoch[{}]", report.epoch), report.step + 1, report.steps,
                 options_.local.any() ? "exchanges" : "steps",
                 fmt::format("loss {:.4f} accuracy {:.4f}", report.loss, report.accuracy));
}

void TrainLog::add(const train::StepReport& report) {
  window_.samples += report.samples;
  window_.correct += report.accuracy * report.samples;
  window_.top_k_correct += report.top_k_accuracy * report.samples;
  window_.loss += report.loss * report.samples;
  window_.seconds += report.time.count();
}

// "Batch [20]" covers 21 batches in the first line of an epoch, as in MXNet's Speedometer. The rate uses the time of
// the steps, because reports of a job come late and in groups.
void TrainLog::log_window(const train::StepReport& report) {
  std::string line = fmt::format("Epoch[{}] Batch [{}]\tSpeed: {:.2f} samples/sec\taccuracy={:.6f}", report.epoch,
                                 report.step * static_cast<std::uint64_t>(options_.local.steps),
                                 window_.samples / window_.seconds, window_.correct / window_.samples);
  if (options_.top_k > 0) line += fmt::format("\t{}={:.6f}", top_k_name(), window_.top_k_correct / window_.samples);
  for (const std::string& metric : options_.losses)
    line += fmt::format("\t{}={:.6f}", metric, window_.loss / window_.samples);
  reporter_.note(line);
  window_ = {};
}

void TrainLog::on_epoch(const train::EpochReport& report) {
  reporter_.note(fmt::format("Epoch[{}] Train-accuracy={:.6f}", report.epoch, report.accuracy));
  if (options_.top_k > 0) {
    reporter_.note(fmt::format("Epoch[{}] Train-{}={:.6f}", report.epoch, top_k_name(), report.top_k_accuracy));
  }
  log_losses(report.epoch, "Train", report.loss);
  reporter_.note(fmt::format("Epoch[{}] Time cost={:.3f}", report.epoch, report.time.count()));
  window_ = {};
}

void TrainLog::on_evaluation(const train::EvaluationReport& report) {
  reporter_.note(fmt::format("Epoch[{}] Validation-accuracy={:.6f}", report.epoch, report.accuracy));
  if (options_.top_k > 0) {
    reporter_.note(fmt::format("Epoch[{}] Validation-{}={:.6f}", report.epoch, top_k_name(), report.top_k_accuracy));
  }
  log_losses(report.epoch, "Validation", report.loss);
}

void TrainLog::log_losses(std::uint32_t epoch, const char* phase, double loss) {
  for (const std::string& metric : options_.losses)
    reporter_.note(fmt::format("Epoch[{}] {}-{}={:.6f}", epoch, phase, metric, loss));
}

void TrainLog::on_checkpoint(const Path& path) {
  last_checkpoint_ = path;
  reporter_.note(fmt::format("Saved checkpoint to \"{}\"", path.string()));
}

void TrainLog::on_warning(const std::string& text) { reporter_.warn(text); }

std::string TrainLog::top_k_name() const { return fmt::format("top_k_accuracy_{}", options_.top_k); }

void TensorLog::on_step(const train::StepReport& report) {
  if ((report.step + 1) % static_cast<std::uint64_t>(every_) != 0) return;
  const backend::ModelState state = executable_.read_state();
  for (const nn::TensorView& tensor : graph_.parameters) {
    double sum = 0;
    for (std::int64_t i = 0; i < tensor.size; ++i) {
      const double value = state.parameters[static_cast<std::size_t>(tensor.offset + i)];
      sum += value * value;
    }
    reporter_.note(fmt::format("Batch: {:7} {:30} {:.6g}", report.step, tensor.name,
                               std::sqrt(sum / static_cast<double>(tensor.size))));
  }
}

}  // namespace dtrain::job
