// Szegedy et al., "Going Deeper with Convolutions", 2014, as torchvision writes it: with batch norms, 3x3 convolutions
// where the paper has 5x5, and without the heads that the paper adds for training.
#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

// Channels: of the 1x1 convolutions that come first, and of those that follow.
struct Inception {
  const char* name;
  int one, reduce_three, three, reduce_five, five, pool;
};
constexpr Inception kThird[] = {{"inception3a", 64, 96, 128, 16, 32, 32}, {"inception3b", 128, 128, 192, 32, 96, 64}};
constexpr Inception kFourth[] = {{"inception4a", 192, 96, 208, 16, 48, 64},
                                 {"inception4b", 160, 112, 224, 24, 64, 64},
                                 {"inception4c", 128, 128, 256, 24, 64, 64},
                                 {"inception4d", 112, 144, 288, 32, 64, 64},
                                 {"inception4e", 256, 160, 320, 32, 128, 128}};
constexpr Inception kFifth[] = {{"inception5a", 256, 160, 320, 32, 128, 128},
                                {"inception5b", 384, 192, 384, 48, 128, 128}};

Pooling full_pooling(int kernel) {
  Pooling pooling = max_pooling(kernel, 2);
  pooling.full = true;
  return pooling;
}

void add_inception(Chain& net, const Inception& plan) {
  const std::string name = plan.name;
  const auto convolve = [&](const char* part, int channels, int kernel) {
    basic_convolution(net, name + part, square_convolution(channels, kernel, 1, kernel / 2));
  };
  Branches branches(net);
  convolve(".branch1", plan.one, 1);
  branches.end();
  convolve(".branch2.0", plan.reduce_three, 1);
  convolve(".branch2.1", plan.three, 3);
  branches.end();
  convolve(".branch3.0", plan.reduce_five, 1);
  convolve(".branch3.1", plan.five, 3);
  branches.end();
  net.then(name + ".branch4.0", max_pooling(3, 1, 1));
  convolve(".branch4.1", plan.pool, 1);
  branches.end();
  branches.join(name + ".concat");
}

}  // namespace

Graph build_googlenet(const NetworkOptions& options) {
  Chain net(options.name, options.image);
  basic_convolution(net, "conv1", square_convolution(64, 7, 2, 3));
  net.then("maxpool1", full_pooling(3));
  basic_convolution(net, "conv2", square_convolution(64, 1));
  basic_convolution(net, "conv3", square_convolution(192, 3, 1, 1));
  net.then("maxpool2", full_pooling(3));
  for (const Inception& plan : kThird) add_inception(net, plan);
  net.then("maxpool3", full_pooling(3));
  for (const Inception& plan : kFourth) add_inception(net, plan);
  net.then("maxpool4", full_pooling(2));
  for (const Inception& plan : kFifth) add_inception(net, plan);
  pool_all(net);
  net.then("dropout", Dropout{0.2f}).then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
