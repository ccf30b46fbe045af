#include "step_window.hpp"

#include <utility>

namespace dtrain::train {

void StepWindow::open() {
  if (!began_) began_ = Beginning{executable_.read_state(), run_};
}

void StepWindow::undo() {
  if (!began_) return;
  executable_.write_state(std::move(began_->state));
  run_ = std::move(began_->run);
  began_.reset();
}

}  // namespace dtrain::train
