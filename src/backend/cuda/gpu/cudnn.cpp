#include "cudnn.hpp"

#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>

#include "../libraries/shared_object.hpp"
#include "gpu_error.hpp"

namespace dtrain::backend::cuda {

namespace {

// Since version 9 each kind of status has a thousand numbers, of which the first is the general one.
bool is_of_kind(cudnnStatus_t status, cudnnStatus_t kind) {
  constexpr int kNumbers = 1000;
  return status / kNumbers == kind / kNumbers;
}

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

void check(const CudnnFunctions& cudnn, cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 256> words{};
  cudnn.cudnnGetLastErrorString(words.data(), words.size());
  const std::string text =
      fmt::format("cuDNN: {} failed: {} {}", what, cudnn.cudnnGetErrorString(status), words.data());
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) throw OutOfDeviceMemory(text);
  if (is_of_kind(status, CUDNN_STATUS_EXECUTION_FAILED)) throw DeviceFailure(text, kIsTheGpuWell);
  throw Error(text);
}

bool is_refusal(cudnnStatus_t status) {
  return is_of_kind(status, CUDNN_STATUS_NOT_SUPPORTED) || status == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
}

Descriptor::Descriptor(const CudnnFunctions& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
  check(cudnn, cudnn.cudnnBackendCreateDescriptor(type, &descriptor_), "a descriptor");
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(cudnn_, other.cudnn_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_) cudnn_->cudnnBackendDestroyDescriptor(descriptor_);
}

void Descriptor::set_all(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* const value : values) raw.push_back(value->get());
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}

void Descriptor::finish() { check(*cudnn_, cudnn_->cudnnBackendFinalize(descriptor_), "a description"); }

// Also where a part of cuDNN is missing or fails: another engine may do without it. A wrong parameter is dtrain's
// error.
bool Descriptor::try_finish() {
  const cudnnStatus_t status = cudnn_->cudnnBackendFinalize(descriptor_);
  if (is_refusal(status) || is_of_kind(status, CUDNN_STATUS_NOT_INITIALIZED) ||
      is_of_kind(status, CUDNN_STATUS_INTERNAL_ERROR))
    return false;
  check(*cudnn_, status, "a description");
  return true;
}

std::vector<Descriptor> Descriptor::get_all(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  return get_at_most(get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr), name, type);
}

std::vector<Descriptor> Descriptor::get_at_most(std::size_t most, cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type) const {
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t k = 0; k < most; ++k) raw.push_back(values.emplace_back(*cudnn_, type).get());
  const std::size_t count = most > 0 ? get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data()) : 0;
  while (values.size() > count) values.pop_back();
  return values;
}

void Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
                         const void* values) {
  check(*cudnn_, cudnn_->cudnnBackendSetAttribute(descriptor_, name, type, static_cast<std::int64_t>(count), values),
        "a part of a description");
}

std::size_t Descriptor::get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t most,
                                void* values) const {
  std::int64_t count = 0;
  check(*cudnn_,
        cudnn_->cudnnBackendGetAttribute(descriptor_, name, type, static_cast<std::int64_t>(most), &count, values),
        "a question about a description");
  return static_cast<std::size_t>(count);
}

}  // namespace dtrain::backend::cuda
