// Stands in for libcudnn.so.9: takes every description and knows no engine for any, so that convolutions are computed
// by their definition.
#include <cudnn.h>

#include <cstddef>
#include <cstdint>

struct cudnnContext {};

namespace {

struct Described {
  cudnnBackendDescriptorType_t type;
};
cudnnContext context;

}  // namespace

std::size_t cudnnGetVersion() { return 90000; }
std::size_t cudnnGetCudartVersion() { return 13000; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the stand-in"; }
void cudnnGetLastErrorString(char* text, std::size_t room) {
  if (room > 0) text[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = &context;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Described{type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Described*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, std::int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const bool asks = static_cast<Described*>(descriptor)->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
  return asks ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, std::int64_t, std::int64_t*, void*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
