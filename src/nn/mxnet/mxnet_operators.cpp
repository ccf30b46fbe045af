#include "mxnet_operators.hpp"

#include <utility>

namespace dtrain::nn {

namespace {

// One by one: the compiler takes a minute and gigabytes for a list of them in braces.
std::vector<MxnetOperator> make_operators() {
  std::vector<MxnetOperator> operators;
  const auto add = [&]<typename Kind>(std::vector<const char*> names, Kind defaults) {
    operators.push_back(MxnetOperator{std::move(names), Layer(std::in_place_type<Kind>, std::move(defaults))});
  };
  add({"Convolution", "Convolution_v1"}, Convolution{.bias = true});
  add({"BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm"},
      BatchNorm{.epsilon = 1e-3f, .momentum = 0.9f, .fix_gamma = true});
  add({"Activation"}, Activation{});
  add({"clip"}, Activation{ActivationKind::relu6});
  add({"LeakyReLU"}, Activation{ActivationKind::gelu});
  add({"hard_sigmoid"}, Activation{ActivationKind::hard_sigmoid});
  add({"relu"}, Activation{ActivationKind::relu});
  add({"tanh"}, Activation{ActivationKind::tanh});
  add({"sigmoid"}, Activation{ActivationKind::sigmoid});
  add({"Pooling", "Pooling_v1"}, Pooling{});
  add({"LRN"}, LocalResponseNorm{.bias = 2});
  add({"FullyConnected"}, Dense{.bias = true});
  add({"Flatten", "flatten"}, Flatten{});
  add({"elemwise_add", "_Plus", "_plus", "_add", "broadcast_add", "broadcast_plus", "add_n", "ElementWiseSum"}, Add{});
  add({"Concat", "concat"}, Concat{});
  add({"broadcast_mul"}, Multiply{});
  add({"Dropout"}, Dropout{0.5f});
  add({"_mul_scalar", "_MulScalar"}, Scale{});
  add({"SoftmaxOutput", "Softmax"}, SoftmaxLoss{});
  return operators;
}

}  // namespace

const std::vector<MxnetOperator>& mxnet_operators() {
  static const std::vector<MxnetOperator> operators = make_operators();
  return operators;
}

}  // namespace dtrain::nn
