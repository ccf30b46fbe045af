// --monitor: the size of every parameter tensor, as MXNet's Monitor prints it.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::job {

// Each `every` steps: the norm of each tensor over the square root of its size. Borrows everything; used from the
// training thread.
class TensorLog final : public train::Observer {
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
