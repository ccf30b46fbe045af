// cuda*: work of one stream that is recorded as a graph, and launched.
#include <utility>

#include "machine.hpp"

using namespace dtrain::testing::cuda_runtime;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    if (stream.capture) throw Refusal{cudaErrorIllegalState, "a stream that is being recorded already"};
    stream.capture = Capture{.mode = mode, .thread = std::this_thread::get_id()};
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&](Machine& machine) {
    *graph = nullptr;
    CUstream_st& stream = use(machine, handle);
    if (!stream.capture) throw Refusal{cudaErrorIllegalState, "a stream that is not being recorded"};
    if (stream.capture->mode != cudaStreamCaptureModeRelaxed && stream.capture->thread != std::this_thread::get_id()) {
      throw Refusal{cudaErrorStreamCaptureWrongThread, "another thread began the recording"};
    }
    const Capture capture = *std::exchange(stream.capture, std::nullopt);
    if (capture.invalid) throw Refusal{cudaErrorStreamCaptureInvalidated, {}};
    machine.graphs.push_back(std::make_unique<CUgraph_st>());
    *graph = machine.graphs.back().get();
    (*graph)->nodes = capture.nodes;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Machine& machine) {
    const CUstream_st& stream = use(machine, handle);
    *status = !stream.capture           ? cudaStreamCaptureStatusNone
              : stream.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&](Machine& machine) {
    const CUgraph_st& from = use(machine.graphs, graph, "a graph");
    machine.executables.push_back(std::make_unique<CUgraphExec_st>());
    *executable = machine.executables.back().get();
    (*executable)->nodes = from.nodes;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&](Machine& machine) { use(machine.graphs, graph, "a graph").destroyed = true; });
}

// A launch that is under way goes on to its end.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call("cudaGraphExecDestroy",
              [&](Machine& machine) { use(machine.executables, executable, "an executable graph").destroyed = true; });
}

// Behind the last launch of the same graph, on whatever stream that was.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&](Machine& machine) {
    CUstream_st& stream = use(machine, handle);
    CUgraphExec_st& graph = use(machine.executables, executable, "an executable graph");
    const auto end = std::make_shared<Mark>(Mark{.stream = &stream});
    if (graph.latest) {
      machine.submit(stream, [after = graph.latest](const CUstream_st&) {
        return Operation{.name = "a wait for the launch before", .after = after};
      });
    }
    for (const Node& node : graph.nodes) machine.submit(stream, node);
    machine.submit(stream, [end](const CUstream_st&) {
      return Operation{.name = "the end of a launch", .turns = {[end] { end->reached = true; }}};
    });
    graph.latest = end;
  });
}
