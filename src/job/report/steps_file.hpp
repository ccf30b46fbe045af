// `steps.jsonl` in the job folder: the course of the training, for `dtrain plot`. One object per line, each for the
// steps of about one second: {"time", "epoch", "step", "steps", "samples", "seconds", "loss", "accuracy",
// "learning_rate", "gradient_norm", "samples_seen"}; and {"time", "begins": true} where training begins or resumes. The
// gradient's norm is that of one step among them, and is left out where it is not known: on GPUs.
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/base/step_numbers.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::job {

class StepsFile final : public train::IgnoringObserver {
 public:
  explicit StepsFile(Path path);
  // `resumed`: existing lines stay; otherwise they are removed.
  void begin(bool resumed);
  // Throws Error if the disk does not take a line; the line is written later.
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  // Writes the last, unfinished window.
  void end() { write_window(); }

 private:
  void append(Json line);
  void write_window();

  const Path path_;
  std::unique_ptr<elastic::LineFile> file_;  // made by the first line
  std::chrono::steady_clock::time_point since_{};
  train::StepReport last_;                                           // last step of the window
  int samples_ = 0;                                                  // in the window; 0: empty
  double seconds_ = 0, loss_ = 0, accuracy_ = 0;                     // sums; loss and accuracy weighted by samples
  std::vector<double> parts_ = {};                                   // of the loss, in the same way
  double gradient_norm_ = std::numeric_limits<double>::quiet_NaN();  // the last one of the window
};

// The numbers of the steps that the lines of such a file are of. What is no such line is passed over; without the file
// there are none. Throws Error if it cannot be read.
StepNumbers step_numbers_in(const Path& file);

}  // namespace dtrain::job
