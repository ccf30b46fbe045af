// One run or job, as far as its files say: it is read while they grow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>

#include "board/curves/step_levels.hpp"
#include "files.hpp"
#include "tail.hpp"

namespace dtrain::board {

double wall_seconds();  // since 1970, by the clock of this machine

// What train.toml says of a key, also where a recipe or a default chose it; empty: nothing.
std::string configured(std::string_view toml, std::string_view key);

// What a run looks like from outside, for the decision what it is doing.
struct RunSigns {
  bool began = false;        // a step or an event was recorded
  bool has_steps = false;    // or its workers train, or run a program
  bool finished = false;     // and nothing began after that
  int exit_code = 0;         // when finished
  bool held = false;         // a process of this machine holds the folder's lock
  double quiet_seconds = 0;  // since the last record, by its own time or by when it was seen
  bool waits = false;        // it trained, and stands still until there are enough workers
};
// "waiting", "preparing", "training", "finished", "stopped", "failed" or "silent". A run waits that has not begun, or
// whose coordinator holds the training because it has too few workers.
const char* state_of(const RunSigns& signs);

class Run {
 public:
  Run(std::string folder, std::string name);

  struct News {
    Tail::News steps{}, events{}, journal{};
    std::string settings{};
    bool has_settings = false;
    bool any() const;
    bool more() const { return steps.more || events.more || journal.more; }
  };
  // Asks the files; one thread, which need not be that of the other members. Where it throws, the next call goes on.
  News fetch(Files& files);
  // `seen`: when, by the clock of this machine; 0 for what may have been there for long.
  void apply(News news, double seen = 0);

  const std::string& id() const { return id_; }
  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  void rename(const std::string& name) { name_ = name; }
  const std::string& steps_path() const { return steps_tail_.path(); }
  const StepLevels& steps() const { return steps_; }
  const std::vector<Json>& events() const { return events_; }
  const std::vector<Json>& journal() const { return journal_; }
  const std::string& settings() const { return settings_; }
  // False for an event of a training that stood in the folder before: its steps are gone, its events stay.
  bool is_of_training(const Json& event) const;

  const char* state(double now, bool held) const { return state_of(signs(now, held)); }
  // Now, or the time of the last record of a run that is silent.
  double end(double now, bool held) const { return state(now, held) == std::string_view("silent") ? last_time_ : now; }
  // The row of the table. `now`: seconds since 1970; `held`: a process holds the lock of the folder.
  Json row(double now, bool held) const;

 private:
  void take_event(Json event);
  void take_validation(const Json& event);
  void retake_validations();
  void forget_events();
  RunSigns signs(double now, bool held) const;

  const std::string folder_;
  std::string name_;
  const std::string id_;
  // Of the thread that fetches.
  Tail steps_tail_, events_tail_, journal_tail_;
  std::string settings_version_;
  bool looked_ = false;
  News fetched_;
  // What was applied.
  StepLevels steps_;
  bool long_news_ = false;  // since steps_ was fit
  std::vector<Json> events_, journal_;
  std::string settings_, network_;
  std::optional<double> epochs_total_;
  bool is_job_ = false, works_ = false, waits_ = false;
  double last_event_ = 0, finished_at_ = 0;
  double last_time_ = 0;  // of the last lines, and not the latest of all: a clock may have been wrong
  double seen_ = 0;       // when this machine saw the last lines come; 0: it has seen none
  int exit_code_ = 0;
  std::string reason_;
  double workers_ = 0, worker_seconds_ = 0, workers_since_ = 0;
  double validation_accuracy_, validation_loss_, best_accuracy_;
};

}  // namespace dtrain::board
