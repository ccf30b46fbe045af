// LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998, with tanh. The names
// are those that MXNet gives to layers without one.
#include "chain.hpp"
#include "families.hpp"

namespace dtrain::nn {

Graph build_lenet(const NetworkOptions& options) {
  const auto biased = [](int out) {
    Convolution convolution = square_convolution(out, 5);
    convolution.bias = true;
    return convolution;
  };
  const Activation tanh{ActivationKind::tanh};
  Chain net(options.name, options.image);
  net.then("convolution0", biased(20)).then("activation0", tanh).then("pooling0", max_pooling(2, 2));
  net.then("convolution1", biased(50)).then("activation1", tanh).then("pooling1", max_pooling(2, 2));
  net.then("flatten0", Flatten{}).then("fullyconnected0", Dense{500}).then("activation2", tanh);
  net.then("fullyconnected1", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
