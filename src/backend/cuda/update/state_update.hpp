// One local phase on a GPU: the optimizer moves the weights and running statistics take the batch's. What is done is
// recorded once; what differs from step to step (UpdateStep) is read on the device.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "layer_shares.hpp"
#include "layer_wise.hpp"
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
    float* sum;                // see ContributionLayout; something else is left there
    float count;               // samples of the step
    float* slots;              // nn::optimizer_slots of them
    float* average;            // null: there is none
    bool from_copies = false;  // gradients of weights are not in the sum but beside their copies
  };
  // What an update has to do with copies of weights.
  struct CopyCalls {
    Call renew;   // makes them of the parameters
    Call update;  // moves the weights that have copies by the gradients of these, and renews them: UpdateWeights
    Call unpack;  // puts these gradients into the sum, where a rule needs all of them there
  };

  // `rule`: of the updates to come, where it is known; what it needs is reserved now, else when it is first met. The
  // device must outlive this.
  StateUpdate(Device& device, const nn::Graph& graph, DType dtype, const Places& places,
              std::optional<nn::OptimizerKind> rule, CopyCalls copies);
  // Step t, counted from 1.
  void run(const Given& given, const Update& update, std::uint64_t t);
  // Of all gradients in `sum`, which stays as it is, as a mean over `count` samples.
  double gradient_length(float* sum, float count);
  // What was recorded by now.
  std::vector<const Recording*> recordings() const;
  std::uint64_t bytes() const {
    return (muon_ ? muon_->bytes() : 0) + (lengths_ ? lengths_->bytes() : 0) + (shares_ ? shares_->bytes() : 0);
  }
  // Whether the rule looks at more than one gradient at a time, and so needs all of them in the sum.
  static bool needs_sum(const nn::Optimizer& rule);

 private:
  // What recorded work is for; the numbers of the rule it reads on the device.
  struct Kind {
    int iterations = 0;  // of muon; 0: another rule
    bool layer_wise = false, cuts_norm = false, averages = false, from_copies = false;
    auto operator<=>(const Kind&) const = default;
  };
  std::vector<Call> calls(const Kind& kind);
  void add_moves(const Kind& kind, std::vector<Call>& calls);
  Call parameters_call(int passed_over) const;
  Call statistics_call() const;
  Call average_call() const;
  const Muon& muon();
  const TensorLengths& lengths();
  const float* shares(float decay);

  Device& device_;
  const nn::Graph& graph_;
  const DType dtype_;
  const ContributionLayout layout_;
  const Places places_;
  const CopyCalls copies_;
  std::unique_ptr<Muon> muon_;
  std::unique_ptr<TensorLengths> lengths_;
  std::unique_ptr<LayerShares> shares_;
  std::map<Kind, std::unique_ptr<Recording>> recordings_;
  std::unique_ptr<Recording> measure_;  // of gradient_length()
};

}  // namespace dtrain::backend::cuda
