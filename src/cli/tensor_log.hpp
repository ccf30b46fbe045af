// --monitor: the size of every parameter tensor, as MXNet's Monitor prints it.
#pragma once

#include <dtrain/train/trainer.hpp>

#include "console.hpp"

namespace dtrain::cli {

// Each `every` steps: the norm of each tensor over the square root of its size. Borrows everything; used from the
// training thread.
class TensorLog final : public train::Observer {
 public:
  TensorLog(Console& console, int every, const nn::Graph& graph, const backend::Executable& executable)
      : console_(console), every_(every), graph_(graph), executable_(executable) {}
  void on_step(const train::StepReport& report) override;

 private:
  Console& console_;
  int every_;
  const nn::Graph& graph_;
  const backend::Executable& executable_;
};

}  // namespace dtrain::cli
