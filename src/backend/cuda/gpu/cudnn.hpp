// cuDNN as a table of functions, filled from the library that was found, and its descriptors as values.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::backend::cuda {

// The one list of what is used of cuDNN.
#define DTRAIN_CUDNN_FUNCTIONS(apply)                                                                         \
  apply(cudnnCreate) apply(cudnnDestroy) apply(cudnnSetStream) apply(cudnnGetErrorString)                     \
      apply(cudnnGetLastErrorString) apply(cudnnBackendCreateDescriptor) apply(cudnnBackendDestroyDescriptor) \
          apply(cudnnBackendSetAttribute) apply(cudnnBackendGetAttribute) apply(cudnnBackendFinalize)         \
              apply(cudnnBackendExecute)

struct CudnnFunctions {
#define DTRAIN_MEMBER(name) decltype(&::name) name = nullptr;
  DTRAIN_CUDNN_FUNCTIONS(DTRAIN_MEMBER)
#undef DTRAIN_MEMBER
};

// Throws Error naming the function that the library lacks.
CudnnFunctions load_cudnn(const std::string& file);

// Throws Error with cuDNN's own words: DeviceFailure where the GPU failed, OutOfDeviceMemory where it has no memory
// left.
void check(const CudnnFunctions& cudnn, cudnnStatus_t status, const char* what);
// cuDNN has nothing that does this, which is an answer and no failure.
bool is_refusal(cudnnStatus_t status);

// How a type of C++ is called as the type of an attribute.
template <typename T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
inline constexpr auto kAttributeType<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnGenStatsMode_t> = CUDNN_TYPE_GENSTATS_MODE;
template <>
inline constexpr auto kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto kAttributeType<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr auto kAttributeType<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

// One descriptor of cuDNN's graph interface; `cudnn` must outlive it. Throws Error where cuDNN fails.
class Descriptor {
 public:
  Descriptor(const CudnnFunctions& cudnn, cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : cudnn_(other.cudnn_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  template <typename T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set_raw(name, kAttributeType<T>, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  template <typename T>
  void set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set_raw(name, kAttributeType<T>, values.size(), values.data());
  }
  void set_all(cudnnBackendAttributeName_t name, std::initializer_list<std::int64_t> values) {
    set_all(name, std::span(values.begin(), values.size()));
  }
  void set_all(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values);
  // No attributes afterwards.
  void finish();
  // The same where cuDNN may refuse what was described.
  bool try_finish();

  template <typename T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get_raw(name, kAttributeType<T>, 1, &value);
    return value;
  }
  // At most as many as there is room for; says how many.
  template <typename T>
  std::size_t get_some(cudnnBackendAttributeName_t name, std::span<T> values) const {
    return std::min(values.size(), get_raw(name, kAttributeType<T>, values.size(), values.data()));
  }
  // All descriptors, which are of that type; cuDNN says how many.
  std::vector<Descriptor> get_all(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  // The same of an attribute for which cuDNN says that there are none as long as it is given no room.
  std::vector<Descriptor> get_at_most(std::size_t most, cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type) const;
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
               const void* values);
  // Says how many there are.
  std::size_t get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t most,
                      void* values) const;
  const CudnnFunctions* cudnn_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace dtrain::backend::cuda
