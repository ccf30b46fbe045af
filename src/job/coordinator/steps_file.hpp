// `steps.jsonl` in the job folder: how the training went, for `dtrain plot`. One object a line, each of the steps of
// about a second: {"time", "epoch", "step", "steps", "samples", "seconds", "loss", "accuracy", "samples_seen"}; and
// {"time", "begins": true} where the training begins or goes on.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::job {

class StepsFile final : public train::Observer {
 public:
  explicit StepsFile(Path path);
  // `resumed`: what is there stays, else it goes away.
  void begin(bool resumed);
  // They throw Error when the disk does not take a line; it is written later then.
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  // Nothing more comes.
  void end() { write_window(); }

 private:
  void append(Json line);
  void write_window();

  const Path path_;
  std::unique_ptr<elastic::LineFile> file_;  // made by the first line
  std::chrono::steady_clock::time_point since_{};
  train::StepReport last_;                        // of the window
  int samples_ = 0;                               // in the window; 0: it is empty
  double seconds_ = 0, loss_ = 0, accuracy_ = 0;  // sums; the latter two weighted by samples
};

// The lines that can be read, oldest first. None when there is no such file.
std::vector<Json> read_steps(const Path& path);

}  // namespace dtrain::job
