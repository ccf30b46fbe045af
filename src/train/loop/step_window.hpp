// Steps that count together or not at all, because what a step holds back (train/gradient_compression.hpp) is lost with
// a worker. Inside a window the state in which it began is kept; undo() returns to it.
#pragma once

#include <optional>

#include "run_state.hpp"

namespace dtrain::train {

class StepWindow {
 public:
  // Both must outlive this.
  StepWindow(backend::Executable& executable, RunState& run) : executable_(executable), run_(run) {}

  bool is_open() const { return began_.has_value(); }
  // Keeps state and run, which stand where the window begins. Nothing where it is open.
  void open();
  void close() { began_.reset(); }
  void undo();  // closes it too; nothing where none is open

  // Where the run stands as far as it cannot be undone.
  const RunState& settled() const { return began_ ? began_->run : run_; }

 private:
  struct Beginning {
    backend::ModelState state;
    RunState run;
  };
  backend::Executable& executable_;
  RunState& run_;
  std::optional<Beginning> began_;
};

}  // namespace dtrain::train
