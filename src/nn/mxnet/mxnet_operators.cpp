#include "mxnet_operators.hpp"

namespace dtrain::nn {

const std::vector<MxnetOperator>& mxnet_operators() {
  static const std::vector<MxnetOperator> operators = {
      {{"Convolution", "Convolution_v1"}, Convolution{.bias = true}},
      {{"BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm"},
       BatchNorm{.epsilon = 1e-3f, .momentum = 0.9f, .fix_gamma = true}},
      {{"Activation"}, Activation{}},
      {{"clip"}, Activation{ActivationKind::relu6}},
      {{"LeakyReLU"}, Activation{ActivationKind::gelu}},
      {{"hard_sigmoid"}, Activation{ActivationKind::hard_sigmoid}},
      {{"relu"}, Activation{ActivationKind::relu}},
      {{"tanh"}, Activation{ActivationKind::tanh}},
      {{"sigmoid"}, Activation{ActivationKind::sigmoid}},
      {{"Pooling", "Pooling_v1"}, Pooling{}},
      {{"FullyConnected"}, Dense{.bias = true}},
      {{"Flatten", "flatten"}, Flatten{}},
      {{"elemwise_add", "_Plus", "_plus", "_add", "broadcast_add", "broadcast_plus", "add_n", "ElementWiseSum"}, Add{}},
      {{"Concat", "concat"}, Concat{}},
      {{"broadcast_mul"}, Multiply{}},
      {{"Dropout"}, Dropout{0.5f}},
      {{"_mul_scalar", "_MulScalar"}, Scale{}},
      {{"SoftmaxOutput", "Softmax"}, SoftmaxLoss{}},
  };
  return operators;
}

}  // namespace dtrain::nn
