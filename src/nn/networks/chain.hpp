// The shorthand in which the networks are written: a builder that remembers its last layer, and square windows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

class Chain {
 public:
  Chain(std::string name, Shape image) : builder_(std::move(name), image) {}

  // The node that the next layer follows.
  int last() const { return last_; }
  void go_back_to(int node) { last_ = node; }

  Chain& then(std::string name, Layer layer) {
    last_ = builder_.add(std::move(name), std::move(layer), {last_});
    return *this;
  }
  // Adds `other` to the last layer's output.
  Chain& plus(std::string name, int other) {
    last_ = builder_.add(std::move(name), Add{}, {last_, other});
    return *this;
  }
  // One layer's channels after the other's.
  Chain& concat(std::string name, std::vector<int> inputs) {
    last_ = builder_.add(std::move(name), Concat{}, std::move(inputs));
    return *this;
  }
  // Multiplies each channel of `input` by the last layer's output.
  Chain& scale_channels(std::string name, int input) {
    last_ = builder_.add(std::move(name), Multiply{}, {input, last_});
    return *this;
  }
  // A layer of several inputs.
  Chain& join(std::string name, Layer layer, std::vector<int> inputs) {
    last_ = builder_.add(std::move(name), std::move(layer), std::move(inputs));
    return *this;
  }
  const Shape& shape() const { return builder_.shape(last_); }
  const Shape& shape(int node) const { return builder_.shape(node); }
  Graph finish(float label_smoothing) { return builder_.finish(last_, label_smoothing); }
  Graph finish(std::vector<int> inputs, const DetectionLoss& loss) { return builder_.finish(std::move(inputs), loss); }
  Graph finish(std::vector<int> inputs, const RegionLoss& loss) { return builder_.finish(std::move(inputs), loss); }

 private:
  GraphBuilder builder_;
  int last_ = 0;
};

inline Convolution square_convolution(int out, int kernel, int stride = 1, int pad = 0) {
  return {.out = out,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

inline Pooling max_pooling(int kernel, int stride, int pad = 0) {
  return {.kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride, .pad_h = pad, .pad_w = pad};
}

inline Pooling global_average() { return {.kind = PoolingKind::average, .global = true}; }

inline const Activation kRelu{ActivationKind::relu};
inline const Activation kRelu6{ActivationKind::relu6};

}  // namespace dtrain::nn
