#include "matrix_problem.hpp"

namespace dtrain::testing {

Problem matrix_problem() {
  nn::GraphBuilder b("matrices", {3, 9, 7});
  const auto convolution = [&](const char* name, int from, nn::Convolution layer) {
    return b.add(name, layer, {from});
  };
  const auto norm = [&](const char* name, int from) { return b.add(name, nn::BatchNorm{}, {from}); };
  int x = convolution("tall", b.input(), {.out = 20, .bias = true});
  x = b.add("tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {x});
  x = convolution("wide", x, {.out = 7, .kernel_h = 3, .kernel_w = 3});
  x = b.add("pool", nn::Pooling{.kernel_h = 2, .kernel_w = 2}, {x});
  x = norm("wide_bn", x);
  x = convolution("grouped", x, {.out = 14, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .groups = 7});
  x = norm("grouped_bn", x);
  x = convolution("row", x, {.out = 1});
  x = convolution("one_number", x, {.out = 1});
  x = convolution("column", x, {.out = 5, .bias = true});
  x = b.add("hidden", nn::Dense{.out = 37}, {x});
  x = b.add("hidden_tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {x});
  x = b.add("deep", nn::Dense{.out = 300, .bias = false}, {x});
  return make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {x})), 5);
}

nn::Optimizer muon_of_odd_numbers() {
  return {.kind = nn::OptimizerKind::muon,
          .momentum = 0.6f,
          .weight_decay = 0.01f,
          .bias_lr_factor = 3,
          .head_lr_factor = 0.5f,
          .newton_schulz = {.steps = 2, .a = 3.0f, .b = -3.5f, .c = 1.6f},
          .rest_momentum = 0.8f};
}

}  // namespace dtrain::testing
