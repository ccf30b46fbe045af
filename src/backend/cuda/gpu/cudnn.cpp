#include "cudnn.hpp"

#include <fmt/format.h>

#include <vector>

#include <dtrain/base/error.hpp>

#include "../libraries/shared_object.hpp"

namespace dtrain::backend::cuda {
namespace {

void check(const CudnnFunctions& cudnn, cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(fmt::format("cuDNN: {} failed: {}", what, cudnn.cudnnGetErrorString(status)));
}

cudnnDataType_t cudnn_type(DType dtype) {
  DTRAIN_CHECK(dtype != DType::float16, "a type without bodies");
  return dtype == DType::bfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// What a convolution is, in cuDNN's terms.
class Descriptors {
 public:
  Descriptors(const CudnnFunctions& functions, const ConvolutionShape& s, DType dtype) : cudnn_(functions) {
    check(cudnn_, cudnn_.cudnnCreateTensorDescriptor(&x), "a tensor descriptor");
    check(cudnn_, cudnn_.cudnnCreateTensorDescriptor(&y), "a tensor descriptor");
    check(cudnn_, cudnn_.cudnnCreateFilterDescriptor(&weights), "a filter descriptor");
    check(cudnn_, cudnn_.cudnnCreateConvolutionDescriptor(&convolution), "a convolution descriptor");
    const cudnnDataType_t type = cudnn_type(dtype);
    constexpr auto nhwc = CUDNN_TENSOR_NHWC;
    check(cudnn_, cudnn_.cudnnSetTensor4dDescriptor(x, nhwc, type, s.n, s.in, s.in_h, s.in_w), "an input's shape");
    check(cudnn_, cudnn_.cudnnSetTensor4dDescriptor(y, nhwc, type, s.n, s.out, s.out_h, s.out_w), "an output's shape");
    check(cudnn_, cudnn_.cudnnSetFilter4dDescriptor(weights, type, nhwc, s.out, s.group_in(), s.kernel_h, s.kernel_w),
          "a filter's shape");
    check(cudnn_,
          cudnn_.cudnnSetConvolution2dDescriptor(convolution, s.pad_h, s.pad_w, s.stride_h, s.stride_w, 1, 1,
                                                 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "a convolution's shape");
    check(cudnn_, cudnn_.cudnnSetConvolutionGroupCount(convolution, s.groups), "a convolution's groups");
    // float32 is float32: not the ten bits that tensor cores would make of it.
    const cudnnMathType_t math = dtype == DType::float32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    check(cudnn_, cudnn_.cudnnSetConvolutionMathType(convolution, math), "a convolution's arithmetic");
  }
  ~Descriptors() {
    if (x) cudnn_.cudnnDestroyTensorDescriptor(x);
    if (y) cudnn_.cudnnDestroyTensorDescriptor(y);
    if (weights) cudnn_.cudnnDestroyFilterDescriptor(weights);
    if (convolution) cudnn_.cudnnDestroyConvolutionDescriptor(convolution);
  }
  Descriptors(const Descriptors&) = delete;

  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t weights = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;

 private:
  const CudnnFunctions& cudnn_;
};

constexpr int kMostAlgorithms = 16;

// Asks heuristics(room, &found, results) and keeps the algorithms that may be used.
template <typename Result, typename Algorithm, typename Heuristics>
std::vector<Algorithm> usable(const Cudnn& cudnn, Heuristics heuristics) {
  Result results[kMostAlgorithms];
  int found = 0;
  std::vector<Algorithm> algorithms;
  if (heuristics(kMostAlgorithms, &found, results) != CUDNN_STATUS_SUCCESS) return algorithms;
  for (int k = 0; k < found; ++k) {
    const Result& result = results[k];
    const bool works = result.status == CUDNN_STATUS_SUCCESS && result.memory <= cudnn.workspace_bytes;
    if (works && result.determinism == CUDNN_DETERMINISTIC) algorithms.push_back(result.algo);
  }
  return algorithms;
}

// Tries the algorithms in order until one works, and stays with it.
template <typename Algorithm>
class Prepared : public CudnnConvolution {
 public:
  Prepared(Cudnn& cudnn, const Convolution& work)
      : cudnn_(cudnn), work_(work), descriptors_(cudnn.functions, work.shape, work.dtype) {}
  bool run() final {
    while (next_ < algorithms_.size()) {
      const cudnnStatus_t status = run_with(algorithms_[next_]);
      if (status == CUDNN_STATUS_SUCCESS) {
        settled_ = true;
        return true;
      }
      if (settled_ || status == CUDNN_STATUS_EXECUTION_FAILED) check(cudnn_.functions, status, "a convolution");
      ++next_;
    }
    return false;
  }

 protected:
  virtual cudnnStatus_t run_with(Algorithm algorithm) = 0;
  Cudnn& cudnn_;
  const Convolution work_;
  Descriptors descriptors_;
  std::vector<Algorithm> algorithms_;
  const float one_ = 1, zero_ = 0;

 private:
  std::size_t next_ = 0;
  bool settled_ = false;
};

class Forward final : public Prepared<cudnnConvolutionFwdAlgo_t> {
 public:
  Forward(Cudnn& cudnn, const Convolution& work) : Prepared(cudnn, work) {
    algorithms_ = usable<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
        cudnn, [&](int room, int* found, cudnnConvolutionFwdAlgoPerf_t* results) {
          return cudnn.functions.cudnnGetConvolutionForwardAlgorithm_v7(cudnn.handle, descriptors_.x,
                                                                        descriptors_.weights, descriptors_.convolution,
                                                                        descriptors_.y, room, found, results);
        });
  }

 private:
  cudnnStatus_t run_with(cudnnConvolutionFwdAlgo_t algorithm) override {
    return cudnn_.functions.cudnnConvolutionForward(cudnn_.handle, &one_, descriptors_.x, work_.a, descriptors_.weights,
                                                    work_.b, descriptors_.convolution, algorithm, cudnn_.workspace,
                                                    cudnn_.workspace_bytes, &zero_, descriptors_.y, work_.result);
  }
};

class BackwardData final : public Prepared<cudnnConvolutionBwdDataAlgo_t> {
 public:
  BackwardData(Cudnn& cudnn, const Convolution& work) : Prepared(cudnn, work) {
    algorithms_ = usable<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
        cudnn, [&](int room, int* found, cudnnConvolutionBwdDataAlgoPerf_t* results) {
          return cudnn.functions.cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnn.handle, descriptors_.weights,
                                                                             descriptors_.y, descriptors_.convolution,
                                                                             descriptors_.x, room, found, results);
        });
  }

 private:
  cudnnStatus_t run_with(cudnnConvolutionBwdDataAlgo_t algorithm) override {
    return cudnn_.functions.cudnnConvolutionBackwardData(
        cudnn_.handle, &one_, descriptors_.weights, work_.b, descriptors_.y, work_.a, descriptors_.convolution,
        algorithm, cudnn_.workspace, cudnn_.workspace_bytes, &zero_, descriptors_.x, work_.result);
  }
};

class BackwardWeights final : public Prepared<cudnnConvolutionBwdFilterAlgo_t> {
 public:
  BackwardWeights(Cudnn& cudnn, const Convolution& work) : Prepared(cudnn, work) {
    algorithms_ = usable<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
        cudnn, [&](int room, int* found, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
          return cudnn.functions.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              cudnn.handle, descriptors_.x, descriptors_.y, descriptors_.convolution, descriptors_.weights, room, found,
              results);
        });
  }

 private:
  cudnnStatus_t run_with(cudnnConvolutionBwdFilterAlgo_t algorithm) override {
    return cudnn_.functions.cudnnConvolutionBackwardFilter(
        cudnn_.handle, &one_, descriptors_.x, work_.a, descriptors_.y, work_.b, descriptors_.convolution, algorithm,
        cudnn_.workspace, cudnn_.workspace_bytes, &zero_, descriptors_.weights, work_.result);
  }
};

}  // namespace

CudnnFunctions load_cudnn(const std::string& file) {
  const SharedObject library(file);
  if (!library) throw Error(fmt::format("{} {}", file, library.problem()));
  CudnnFunctions functions;
#define DTRAIN_LOAD(name)                                                                  \
  functions.name = library.symbol<std::remove_pointer_t<decltype(functions.name)>>(#name); \
  if (!functions.name) throw Error(fmt::format("{} has no {}", file, #name));
  DTRAIN_CUDNN_FUNCTIONS(DTRAIN_LOAD)
#undef DTRAIN_LOAD
  return functions;
}

Cudnn::Cudnn(const CudnnFunctions& of, cudaStream_t stream, void* memory, std::size_t bytes)
    : functions(of), workspace(memory), workspace_bytes(bytes) {
  check(functions, functions.cudnnCreate(&handle), "its start");
  check(functions, functions.cudnnSetStream(handle, stream), "the choice of a stream");
}

Cudnn::~Cudnn() {
  if (handle) functions.cudnnDestroy(handle);
}

std::unique_ptr<CudnnConvolution> Cudnn::prepare(const Convolution& convolution) {
  switch (convolution.direction) {
    case Direction::forward:
      return std::make_unique<Forward>(*this, convolution);
    case Direction::backward_data:
      return std::make_unique<BackwardData>(*this, convolution);
    case Direction::backward_weights:
      return std::make_unique<BackwardWeights>(*this, convolution);
  }
  return nullptr;
}

}  // namespace dtrain::backend::cuda
