#include "train_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <variant>

namespace dtrain::job {
namespace {

// MXNet's metrics are plain cross-entropy, which evaluations count and a training with another loss does not.
std::vector<std::string> names_of_training_loss(const std::vector<std::string>& metrics, const nn::Graph& graph) {
  const nn::Layer* const last = graph.nodes.empty() ? nullptr : &graph.nodes.back().layer;
  const auto* const loss = last ? std::get_if<nn::SoftmaxLoss>(last) : nullptr;
  if (metrics.empty() || !loss || *loss == nn::SoftmaxLoss{}) return metrics;
  return {"loss"};
}

}  // namespace

TrainLog::TrainLog(Reporter& reporter, const config::TrainOptions& options, const nn::Graph& graph)
    : reporter_(reporter),
      options_(options),
      training_losses_(names_of_training_loss(options.losses, graph)),
      progress_(reporter) {}

void TrainLog::on_step(const train::StepReport& report) {
  add(report);
  const auto every = static_cast<std::uint64_t>(std::max(1, options_.disp_batches / options_.local.steps));
  if (report.step > 0 && report.step % every == 0) log_window(report);
  progress_.show(fmt::format("Epoch[{}]", report.epoch), report.step + 1, report.steps,
                 options_.local.any() ? "exchanges" : "steps",
                 {fmt::format("loss {:.4f}", report.loss),
                  std::isnan(report.accuracy) ? std::string() : fmt::format("accuracy {:.4f}", report.accuracy)});
}

void TrainLog::add(const train::StepReport& report) {
  window_.samples += report.samples;
  window_.correct += report.accuracy * report.samples;
  window_.top_k_correct += report.top_k_accuracy * report.samples;
  window_.loss += report.loss * report.samples;
  window_.seconds += report.time.count();
  window_.parts.resize(report.parts.size());
  for (std::size_t part = 0; part < report.parts.size(); ++part) {
    window_.parts[part] += report.parts[part].value * report.samples;
  }
}

// A detector has losses instead of an accuracy.
std::string TrainLog::window_metrics(const train::StepReport& report) const {
  if (std::isnan(report.accuracy)) {
    std::string text = fmt::format("\tloss={:.6f}", window_.loss / window_.samples);
    for (std::size_t part = 0; part < report.parts.size(); ++part) {
      text += fmt::format("\t{}={:.6f}", report.parts[part].name, window_.parts[part] / window_.samples);
    }
    return text;
  }
  std::string text = fmt::format("\taccuracy={:.6f}", window_.correct / window_.samples);
  if (options_.top_k > 0) text += fmt::format("\t{}={:.6f}", top_k_name(), window_.top_k_correct / window_.samples);
  for (const std::string& metric : training_losses_) {
    text += fmt::format("\t{}={:.6f}", metric, window_.loss / window_.samples);
  }
  return text;
}

// "Batch [20]" covers 21 batches in the first line of an epoch, as in MXNet's Speedometer. The rate uses the time of
// the steps, because reports of a job come late and in groups.
void TrainLog::log_window(const train::StepReport& report) {
  reporter_.note(fmt::format("Epoch[{}] Batch [{}]\tSpeed: {:.2f} samples/sec{}", report.epoch,
                             report.step * static_cast<std::uint64_t>(options_.local.steps),
                             window_.samples / window_.seconds, window_metrics(report)));
  window_ = {};
}

void TrainLog::on_epoch(const train::EpochReport& report) {
  if (std::isnan(report.accuracy)) {
    reporter_.note(fmt::format("Epoch[{}] Train-loss={:.6f}", report.epoch, report.loss));
  } else {
    log_accuracy(report.epoch, "Train", training_losses_, report);
  }
  reporter_.note(fmt::format("Epoch[{}] Time cost={:.3f}", report.epoch, report.time.count()));
  window_ = {};
}

void TrainLog::on_evaluation(const train::EvaluationReport& report) {
  if (!report.boxes) return log_accuracy(report.epoch, "Validation", options_.losses, report);
  const auto log = [&](const char* what, const train::CocoFigures& figures) {
    reporter_.note(fmt::format("Epoch[{}] Validation-{}AP={:.6f}", report.epoch, what, figures.ap));
    reporter_.note(fmt::format("Epoch[{}] Validation-{}AP50={:.6f}", report.epoch, what, figures.ap50));
  };
  log("", *report.boxes);
  if (report.masks) log("mask-", *report.masks);
}

template <typename Report>
void TrainLog::log_accuracy(std::uint32_t epoch, const char* phase, const std::vector<std::string>& losses,
                            const Report& report) {
  reporter_.note(fmt::format("Epoch[{}] {}-accuracy={:.6f}", epoch, phase, report.accuracy));
  if (options_.top_k > 0) {
    reporter_.note(fmt::format("Epoch[{}] {}-{}={:.6f}", epoch, phase, top_k_name(), report.top_k_accuracy));
  }
  log_losses(epoch, phase, losses, report.loss);
}

void TrainLog::log_losses(std::uint32_t epoch, const char* phase, const std::vector<std::string>& names, double loss) {
  for (const std::string& name : names) reporter_.note(fmt::format("Epoch[{}] {}-{}={:.6f}", epoch, phase, name, loss));
}

void TrainLog::on_checkpoint(const Path& path) {
  if (path.extension() == ".safetensors") last_checkpoint_ = path;  // MXNet's files stand beside it
  reporter_.note(fmt::format("Saved checkpoint to \"{}\"", path.string()));
}

void TrainLog::on_shards(const train::ShardsReport& report) {
  reporter_.note(
      fmt::format("Shards follow the speed of the workers: ranks compute {}", fmt::join(report.shards, ", ")));
}

void TrainLog::on_note(const std::string& text) { reporter_.note(text); }

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
