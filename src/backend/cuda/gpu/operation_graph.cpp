#include "operation_graph.hpp"

#include <cstddef>
#include <numeric>

namespace dtrain::backend::cuda {
namespace {

cudnnDataType_t cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDNN_DATA_FLOAT;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::float16:
      return CUDNN_DATA_HALF;
  }
  return CUDNN_DATA_FLOAT;
}

// How cuDNN calls the parts of a convolution in one direction.
struct Words {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, weights, y, geometry, alpha, beta;
};

Words words_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// The three tensors, whatever is computed of which.
struct Memory {
  const void *x, *weights, *y;
};

Memory memory_of(const Convolution& work) {
  switch (work.direction) {
    case Direction::forward:
      return {work.a, work.b, work.result};
    case Direction::backward_data:
      return {work.result, work.b, work.a};
    case Direction::backward_weights:
      break;
  }
  return {work.a, work.result, work.b};
}

void describe(Descriptor& tensor, std::int64_t name, DType dtype, const std::array<std::int64_t, 4>& sizes) {
  constexpr std::int64_t kAlignment = 16;  // of the first element; ours are aligned to 256 bytes
  const auto [n, c, h, w] = sizes;
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(dtype));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  tensor.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w});
  tensor.set_all(CUDNN_ATTR_TENSOR_STRIDES, {h * w * c, 1, w * c, c});
}

std::array<std::int64_t, 4> input_sizes(const ConvolutionShape& s) { return {s.n, s.in, s.in_h, s.in_w}; }

}  // namespace

OperationGraph::OperationGraph(const CudnnTarget& target, const Convolution& work)
    : cudnn_(target.cudnn), graph_(target.cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  graph_.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, add_operations(work));
  if (target.handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph_.finish();
}

Descriptor OperationGraph::operands(void* workspace) const {
  std::vector<std::int64_t> names(memory_.size());
  std::iota(names.begin(), names.end(), 0);
  Descriptor pack(cudnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
  pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, memory_);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finish();
  return pack;
}

Descriptor& OperationGraph::add(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(cudnn_, type); }

Descriptor& OperationGraph::add_tensor(DType dtype, const void* memory, const std::array<std::int64_t, 4>& sizes) {
  Descriptor& tensor = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  describe(tensor, static_cast<std::int64_t>(memory_.size()), dtype, sizes);
  tensor.finish();
  memory_.push_back(const_cast<void*>(memory));
  return tensor;
}

Descriptor& OperationGraph::add_channels(const float* memory, std::int64_t channels) {
  return add_tensor(DType::float32, memory, {1, channels, 1, 1});
}

Descriptor& OperationGraph::add_geometry(const ConvolutionShape& s) {
  Descriptor& geometry = add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  geometry.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  geometry.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  geometry.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  geometry.set_all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {s.pad_h, s.pad_w});
  geometry.set_all(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {s.pad_h, s.pad_w});
  geometry.set_all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {s.stride_h, s.stride_w});
  geometry.set_all(CUDNN_ATTR_CONVOLUTION_DILATIONS, {s.dilation_h, s.dilation_w});
  geometry.finish();
  return geometry;
}

std::vector<const Descriptor*> OperationGraph::add_operations(const Convolution& work) {
  const ConvolutionShape& s = work.shape;
  const Words words = words_of(work.direction);
  const Memory memory = memory_of(work);
  std::vector<const Descriptor*> operations;
  const Descriptor& x =
      work.normed.fused ? add_normed(work, operations) : add_tensor(work.dtype, memory.x, input_sizes(s));
  // Groups follow from the channels that the weights leave out.
  const Descriptor& weights = add_tensor(work.dtype, memory.weights, {s.out, s.group_in(), s.kernel_h, s.kernel_w});
  const Descriptor& y = add_tensor(work.dtype, memory.y, {s.n, s.out, s.out_h, s.out_w});
  const Descriptor& geometry = add_geometry(s);
  Descriptor& operation = add(words.operation);
  operation.set(words.x, x);
  operation.set(words.weights, weights);
  operation.set(words.y, y);
  operation.set(words.geometry, geometry);
  operation.set(words.alpha, 1.0f);
  operation.set(words.beta, 0.0f);
  operation.finish();
  operations.push_back(&operation);
  if (work.moments) operations.push_back(&add_moments(y, work));
  return operations;
}

const Descriptor& OperationGraph::add_normed(const Convolution& work, std::vector<const Descriptor*>& operations) {
  const std::int64_t c = work.shape.in;
  const auto* const factors = static_cast<const std::byte*>(work.normed.factors);
  const auto* const offsets =
      factors + static_cast<std::size_t>(c) * (work.dtype == DType::float32 ? sizeof(float) : sizeof(Half));
  const Descriptor& x = add_tensor(work.dtype, work.normed.x, input_sizes(work.shape));
  const Descriptor& factor = add_tensor(work.dtype, factors, {1, c, 1, 1});
  const Descriptor& offset = add_tensor(work.dtype, offsets, {1, c, 1, 1});
  const Descriptor& scaled = add_passing(work);
  const Descriptor& shifted = add_passing(work);
  const Descriptor& result = add_passing(work);
  operations = {&add_pointwise(CUDNN_POINTWISE_MUL, x, &factor, scaled),
                &add_pointwise(CUDNN_POINTWISE_ADD, scaled, &offset, shifted),
                &add_pointwise(CUDNN_POINTWISE_RELU_FWD, shifted, nullptr, result)};
  return result;
}

Descriptor& OperationGraph::add_passing(const Convolution& work) {
  Descriptor& tensor = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  describe(tensor, --passing_, work.dtype, input_sizes(work.shape));
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.finish();
  return tensor;
}

Descriptor& OperationGraph::add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* by,
                                          const Descriptor& y) {
  Descriptor& kind = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  kind.finish();
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (by) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *by);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finish();
  return operation;
}

Descriptor& OperationGraph::add_moments(const Descriptor& of, const Convolution& work) {
  const Descriptor& sums = add_channels(work.moments, work.shape.out);
  const Descriptor& squares = add_channels(work.moments + work.shape.out, work.shape.out);
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, of);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sums);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
  operation.finish();
  return operation;
}

}  // namespace dtrain::backend::cuda
