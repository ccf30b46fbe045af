// Stands in for libcudnn.so.9: takes every description, and names the engines that a test says (cudnn.hpp).
#include "cudnn.hpp"

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using namespace dtrain::testing::cuda_runtime;

struct Described {
  cudnnBackendDescriptorType_t type;
  const CudnnEngine* engine = nullptr;  // of an engine, its configuration, a plan
  std::size_t knob = 0;                 // of a knob: which of the engine's
  bool asks_first = true;               // of a question to heuristics: the first mode
  std::vector<void*> memory = {};       // of a variant pack
};
const CudnnKnowledge* known = nullptr;

Described& described(cudnnBackendDescriptor_t descriptor) { return *static_cast<Described*>(descriptor); }

// Answers with as many of the values as there is room for.
template <typename T>
cudnnStatus_t say(const std::vector<T>& values, std::int64_t room, std::int64_t* count, void* to) {
  const auto fits = std::min<std::int64_t>(room, static_cast<std::int64_t>(values.size()));
  if (count) *count = fits;
  std::copy_n(values.begin(), fits, static_cast<T*>(to));
  return CUDNN_STATUS_SUCCESS;
}

// Makes the caller's descriptors those of something. As many as there are, or as there is room for.
template <typename Fill>
cudnnStatus_t fill(std::size_t there, std::int64_t room, std::int64_t* count, void* to, Fill fill_one) {
  const auto fits = std::min(static_cast<std::size_t>(room), there);
  for (std::size_t k = 0; k < fits; ++k) fill_one(described(static_cast<cudnnBackendDescriptor_t*>(to)[k]), k);
  *count = static_cast<std::int64_t>(fits);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" void dtrain_cudnn_know(const CudnnKnowledge* knowledge) { known = knowledge; }

std::size_t cudnnGetVersion() { return 90000; }
std::size_t cudnnGetCudartVersion() { return 13000; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the stand-in"; }
void cudnnGetLastErrorString(char* text, std::size_t room) {
  if (room > 0) text[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Described{.type = type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &described(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t count, const void* values) {
  Described& to = described(descriptor);
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE) {
    to.asks_first = *static_cast<const cudnnBackendHeurMode_t*>(values) == CUDNN_HEUR_MODE_A;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
    to.engine = described(*static_cast<const cudnnBackendDescriptor_t*>(values)).engine;
  } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    to.memory.assign(static_cast<void* const*>(values), static_cast<void* const*>(values) + count);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const Described& of = described(descriptor);
  const bool answers = of.type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR || (known && of.asks_first);
  return answers ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t room, std::int64_t* count, void* to) {
  const Described& of = described(descriptor);
  switch (static_cast<int>(name)) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = static_cast<std::int64_t>(known->engines.size());
      if (room == 0) return CUDNN_STATUS_SUCCESS;
      return fill(known->engines.size(), room, count, to,
                  [](Described& one, std::size_t k) { one.engine = &known->engines[k]; });
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      if (room == 0) return CUDNN_STATUS_SUCCESS;
      return fill(1, room, count, to, [&](Described& one, std::size_t) { one.engine = of.engine; });
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:  // without room there are none, as in cuDNN
      return fill(of.engine->knobs.size(), room, count, to, [&](Described& one, std::size_t k) {
        one.engine = of.engine;
        one.knob = k;
      });
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return say<std::int64_t>({of.engine->number}, room, count, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return say<cudnnBackendNumericalNote_t>({}, room, count, to);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      if (!of.engine->made_at_run_time) return say<cudnnBackendBehaviorNote_t>({}, room, count, to);
      return say<cudnnBackendBehaviorNote_t>({CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, room, count, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return say<cudnnBackendKnobType_t>({static_cast<cudnnBackendKnobType_t>(of.engine->knobs[of.knob].first)}, room,
                                         count, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return say<std::int64_t>({of.engine->knobs[of.knob].second}, room, count, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return say<std::int64_t>({0}, room, count, to);
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const CudnnEngine& engine = *described(plan).engine;
  if (engine.refuses) return CUDNN_STATUS_NOT_SUPPORTED;
  known->run(engine, described(pack).memory, handle->stream);
  return CUDNN_STATUS_SUCCESS;
}
