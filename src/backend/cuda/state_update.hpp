// One local phase on a GPU: the optimizer moves the weights and running statistics take the batch's. What is done is
// recorded once; what differs from step to step (UpdateStep) is read on the device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "muon.hpp"

namespace dtrain::backend::cuda {

class StateUpdate {
 public:
  // Memory of the device that stays where it is.
  struct Places {
    float* parameters;
    float* statistics;
    const std::uint8_t* flags;  // per parameter: ParameterFlag
    const float* momenta;       // per statistic
    UpdateStep* step;
  };
  // Memory of the device that may be elsewhere at each step.
  struct Given {
    float* sum;    // see ContributionLayout; something else is left there
    float count;   // samples of the step
    float* slots;  // nn::optimizer_slots of them
  };

  // `rule`: of the updates to come, where it is known; what it needs is reserved now, else when it is first met. `last`
  // is done at the end of each update. The device must outlive this.
  StateUpdate(Device& device, const nn::Graph& graph, DType dtype, const Places& places,
              std::optional<nn::OptimizerKind> rule, Call last);
  // Step t, counted from 1.
  void run(const Given& given, const Update& update, std::uint64_t t);
  // What was recorded by now.
  std::vector<const Recording*> recordings() const;
  std::uint64_t bytes() const { return muon_ ? muon_->bytes() : 0; }

 private:
  Recording& recording(const nn::Optimizer& rule);
  std::vector<Call> calls(const nn::Optimizer& rule);
  const Muon& muon();

  Device& device_;
  const nn::Graph& graph_;
  const DType dtype_;
  const ContributionLayout layout_;
  const Places places_;
  const Call last_;
  std::unique_ptr<Muon> muon_;
  std::map<int, std::unique_ptr<Recording>> recordings_;  // by the iterations of muon; 0: without it
};

}  // namespace dtrain::backend::cuda
