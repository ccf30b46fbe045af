// The log lines of the MXNet scripts and the progress line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/train/trainer.hpp>

#include "config/train_options.hpp"
#include "progress_line.hpp"

namespace dtrain::job {

// Borrows everything; used from one thread.
class TrainLog final : public train::Observer {
 public:
  // `graph`: its loss says by which names the log shows the training's.
  TrainLog(Reporter& reporter, const config::TrainOptions& options, const nn::Graph& graph);
  void on_first_batch(const data::Batch&) override {}
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_evaluation(const train::EvaluationReport& report) override;
  void on_checkpoint(const Path& path) override;
  void on_shards(const train::ShardsReport& report) override;
  void on_note(const std::string& text) override;
  void on_warning(const std::string& text) override;
  void on_lost(const std::string&) override {}  // the end of the run names it
  const std::optional<Path>& last_checkpoint() const { return last_checkpoint_; }

 private:
  // Sums since the last log line.
  struct Window {
    double samples = 0, correct = 0, top_k_correct = 0, loss = 0, seconds = 0;
    std::vector<double> parts = {};  // of a detector's loss
  };

  void add(const train::StepReport& report);
  void log_window(const train::StepReport& report);
  std::string window_metrics(const train::StepReport& report) const;
  template <typename Report>
  void log_accuracy(std::uint32_t epoch, const char* phase, const std::vector<std::string>& losses,
                    const Report& report);
  void log_losses(std::uint32_t epoch, const char* phase, const std::vector<std::string>& names, double loss);
  std::string top_k_name() const;

  Reporter& reporter_;
  const config::TrainOptions& options_;
  const std::vector<std::string> training_losses_;  // names of the training's loss
  ProgressLine progress_;
  Window window_;
  std::optional<Path> last_checkpoint_;
};

// --monitor, as MXNet's Monitor prints it: every `every` steps, the norm of each tensor over the square root of its
// size. Borrows everything; used from the training thread.
class TensorLog final : public train::IgnoringObserver {
 public:
  TensorLog(Reporter& reporter, int every, const nn::Graph& graph, const backend::Executable& executable)
      : reporter_(reporter), every_(every), graph_(graph), executable_(executable) {}
  void on_step(const train::StepReport& report) override;

 private:
  Reporter& reporter_;
  int every_;
  const nn::Graph& graph_;
  const backend::Executable& executable_;
};

}  // namespace dtrain::job
