// The log lines of the MXNet scripts, the progress line and --monitor.
#pragma once

#include <chrono>
#include <optional>

#include <dtrain/train/trainer.hpp>

#include "console.hpp"
#include "progress.hpp"
#include "train_options.hpp"

namespace dtrain::cli {

// Borrows everything; used from the training thread.
class TrainLog final : public train::Observer {
 public:
  TrainLog(Console& console, const TrainOptions& options, const nn::Graph& graph,
           const backend::Executable& executable);
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_evaluation(const train::EvaluationReport& report) override;
  void on_checkpoint(const Path& path) override;
  void on_warning(const std::string& text) override;
  const std::optional<Path>& last_checkpoint() const { return last_checkpoint_; }

 private:
  // Sums since the last log line.
  struct Window {
    double samples = 0, correct = 0, top_k_correct = 0;
  };
  using Clock = std::chrono::steady_clock;

  void add(const train::StepReport& report);
  void log_window(const train::StepReport& report);
  void log_tensors(const train::StepReport& report) const;
  std::string top_k_name() const;

  Console& console_;
  const TrainOptions& options_;
  const nn::Graph& graph_;
  const backend::Executable& executable_;
  Progress progress_;
  Window window_;
  double timed_samples_ = 0;  // samples since clock_: the first step of an epoch only starts it, as in MXNet
  Clock::time_point clock_;
  bool clock_runs_ = false;
  std::optional<Path> last_checkpoint_;
};

}  // namespace dtrain::cli
