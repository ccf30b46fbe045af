// Which nodes of a graph are computed together.
#pragma once

#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::backend {

// A batch norm with what follows it: output = relu(norm(x) + residual), both parts optional; or gelu(norm(x)); or the
// max pooling of relu(norm(x)).
struct NormGroup {
  int output = -1;    // the last node of the group; its value is the group's
  int residual = -1;  // the node whose value is added, or -1
  bool relu = false;
  bool gelu = false;
  int pooling = -1;  // the node of the pooling, or -1
  // One convolution or dense layer reads the value: cheaper computed again in the backward pass, from an input that is
  // read there anyway, than written to memory and read back.
  bool computed_twice = false;
  // The value is the bare norm, and nothing reads it but another norm's group, which adds it as its residual: cheaper
  // computed there than written to memory and read back.
  bool added_by_norm = false;
};

struct Fusion {
  std::vector<NormGroup> norms;       // by node; meaningful for batch norms
  std::vector<int> norm_of;           // by node: the batch norm whose group ends here, or -1
  std::vector<bool> inside;           // by node: computed as part of a group that ends later
  std::vector<bool> flatten_is_free;  // by node: a Flatten whose readers take any order of elements
  std::vector<bool> bias_is_later;    // by node: a product whose only reader is an activation, which may add the bias
  std::vector<bool> needs_gradient;   // by node: some parameter that moves stands before or at it
  std::vector<bool> stays_float;      // by node: the logits, which stay float32 for the loss
};

// What a backend computes together with a norm beside a residual and a ReLU.
struct NormTails {
  bool gelu = false, max_pooling = false;
};
Fusion fuse(const nn::Graph& graph, NormTails tails = {});

// Whether the slope of an activation is computed from its input: its output does not say it.
inline bool slope_is_by_input(const nn::Activation& layer) { return layer.kind >= nn::ActivationKind::gelu; }

}  // namespace dtrain::backend
