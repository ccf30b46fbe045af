// A small multilayer perceptron.
#include "chain.hpp"
#include "families.hpp"

namespace dtrain::nn {

Graph build_mlp(const NetworkOptions& options) {
  Chain net(options.name, options.image);
  net.then("flatten0", Flatten{});
  net.then("fc1", Dense{128}).then("relu1", kRelu);
  net.then("fc2", Dense{64}).then("relu2", kRelu);
  net.then("fc3", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
