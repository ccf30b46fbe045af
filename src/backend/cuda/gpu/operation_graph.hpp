// Work as an operation graph of cuDNN: what is to be computed, with no word on how.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "../call.hpp"
#include "cudnn.hpp"

namespace dtrain::backend::cuda {

// The GPU that is meant: one that is here, by its handle, or one that is only described.
struct CudnnTarget {
  const CudnnFunctions& cudnn;
  cudnnHandle_t handle = nullptr;
  const Descriptor* described = nullptr;
};

class OperationGraph {
 public:
  OperationGraph(const CudnnTarget& target, const Convolution& work);
  const Descriptor& descriptor() const { return graph_; }
  // The memory that it reads and writes, and `workspace` for what an engine computes on the way.
  Descriptor operands(void* workspace) const;

 private:
  Descriptor& add(cudnnBackendDescriptorType_t type);
  // n, c, h, w; lying in the order n, h, w, c.
  Descriptor& add_tensor(DType dtype, const void* memory, const std::array<std::int64_t, 4>& sizes);
  // One number a channel.
  Descriptor& add_channels(const float* memory, std::int64_t channels);
  // What an operation hands to the next and then drops; of the same kind as an input.
  Descriptor& add_passing(const Convolution& work);
  // relu(x * factor + offset), and what it takes to compute it.
  const Descriptor& add_normed(const Convolution& work, std::vector<const Descriptor*>& operations);
  Descriptor& add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* by, const Descriptor& y);
  Descriptor& add_geometry(const ConvolutionShape& shape);
  // What computes the work, in order.
  std::vector<const Descriptor*> add_operations(const Convolution& work);
  Descriptor& add_moments(const Descriptor& of, const Convolution& work);

  const CudnnFunctions& cudnn_;
  std::deque<Descriptor> parts_;  // what graph_ is made of
  std::vector<void*> memory_;     // of the tensors; tensor k is called k
  std::int64_t passing_ = 0;      // how many tensors are in no memory; they are called -1, -2, ...
  Descriptor graph_;
};

}  // namespace dtrain::backend::cuda
