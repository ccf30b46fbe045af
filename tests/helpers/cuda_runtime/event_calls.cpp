// cuda*: events. A wait is for the record that was the last one when it was asked for.
#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

namespace {

void check_record(const CUstream_st& stream, const CUevent_st& event) {
  if (stream.gpu != event.gpu) throw Refusal{cudaErrorInvalidResourceHandle, "an event of another GPU"};
}

Operation reach(const CUstream_st& stream, CUevent_st& event) {
  const auto mark = std::make_shared<Mark>(Mark{.stream = &stream});
  event.latest = mark;
  event.captured_in = nullptr;
  return {.name = "an event", .turns = {[mark] { mark->reached = true; }}};
}

// In a recording, the event is a point of the recording and of nothing else.
void record(Machine& machine, CUstream_st& stream, CUevent_st& event, bool outside) {
  check_record(stream, event);
  if (!stream.capture || outside) {
    return machine.submit(stream, [&event](const CUstream_st& on) { return reach(on, event); });
  }
  if (stream.capture->invalid) throw Refusal{cudaErrorStreamCaptureInvalidated, {}};
  event.captured_in = &stream;
}

void wait(Machine& machine, CUstream_st& stream, CUevent_st& event, bool outside) {
  const auto wait_node = [&event](const CUstream_st&) { return Operation{.name = "a wait", .after = event.latest}; };
  if (event.captured_in && event.captured_in->capture) {
    if (event.captured_in == &stream) return;  // is behind it
    throw Refusal{cudaErrorStreamCaptureUnsupported, "recordings of several streams, which the stand-in does not know"};
  }
  if (stream.capture && !outside) invalidate(stream, cudaErrorStreamCaptureIsolation);
  if (stream.capture || event.latest) machine.submit(stream, wait_node);
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Machine& machine) {
    machine.events.push_back(std::make_unique<CUevent_st>());
    *event = machine.events.back().get();
    (*event)->gpu = Machine::gpu();
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  });
}

// Who waits for it already still does.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&](Machine& machine) { use(machine, event).destroyed = true; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord",
              [&](Machine& machine) { record(machine, use(machine, stream), use(machine, event), false); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call("cudaEventRecordWithFlags", [&](Machine& machine) {
    record(machine, use(machine, stream), use(machine, event), flags == cudaEventRecordExternal);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", [&](Machine& machine) {
    wait(machine, use(machine, stream), use(machine, event), flags == cudaEventWaitExternal);
  });
}

// A millisecond passes between any two events: the stand-in has no time of its own.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&](Machine& machine) {
    for (const cudaEvent_t handle : {begin, end}) {
      const CUevent_st& event = use(machine, handle);
      if (!event.timed || !event.latest) throw Refusal{cudaErrorInvalidResourceHandle, "an event without a time"};
      if (!event.latest->reached) throw Refusal{cudaErrorNotReady, {}};
    }
    *milliseconds = 1;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", [&](Machine& machine) {
    const CUevent_st& event = use(machine, handle);
    if (event.captured_in) throw Refusal{cudaErrorCapturedEvent, {}};
    if (event.latest) machine.queues.reach(*event.latest);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call("cudaEventQuery", [&](Machine& machine) {
    const CUevent_st& event = use(machine, handle);
    if (event.captured_in) throw Refusal{cudaErrorCapturedEvent, {}};
    if (!event.latest || event.latest->reached) return;
    machine.queues.go_on_a_little(*event.latest->stream);
    throw Refusal{cudaErrorNotReady, {}};
  });
}
