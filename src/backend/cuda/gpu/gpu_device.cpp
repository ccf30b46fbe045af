#include "gpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "../memory.hpp"
#include "cudnn_convolution.hpp"
#include "gpu_error.hpp"
#include "native/natives.hpp"
#include "native/product.hpp"

namespace dtrain::backend::cuda {
namespace {

// What algorithms of cuDNN may use: an eighth of the GPU, at most 1 GiB.
std::uint64_t workspace_for(std::uint64_t memory) {
  return std::min<std::uint64_t>(memory / 8, std::uint64_t{1} << 30);
}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "the start of a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    check(cudaEventCreateWithFlags(&event_, flags), "the start of an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class GpuSideCopy final : public SideCopy {
 public:
  GpuSideCopy(int gpu, cudaStream_t work, cudaStream_t copies) : gpu_(gpu), work_(work), copies_(copies) {}

  void begin(const std::vector<CopyPiece>& pieces) override {
    check(cudaSetDevice(gpu_), "the choice of the GPU");
    check(cudaEventRecord(reached_.get(), work_), "a mark in its work");
    check(cudaStreamWaitEvent(copies_, reached_.get(), 0), "the order of a copy");
    for (const CopyPiece& piece : pieces) {
      check(cudaMemcpyAsync(piece.to, piece.from, piece.bytes, cudaMemcpyHostToDevice, copies_), "a copy of samples");
    }
    check(cudaEventRecord(done_.get(), copies_), "a mark behind a copy");
  }
  void wait() override {
    check(cudaSetDevice(gpu_), "the choice of the GPU");
    check(cudaEventSynchronize(done_.get()), "the end of a copy");
  }
  void join() override {
    check(cudaSetDevice(gpu_), "the choice of the GPU");
    check(cudaStreamWaitEvent(work_, done_.get(), 0), "the wait for a copy");
  }

 private:
  const int gpu_;
  cudaStream_t work_, copies_;
  Event reached_, done_;
};

// A call, ready to run: a convolution has its plan.
struct Step {
  Call call;
  std::unique_ptr<CudnnConvolution> convolution;  // null: by definition, or no convolution
};

int markers_in(const std::vector<Call>& calls) {
  int number = 0;
  for (const Call& call : calls) {
    if (const auto* const marker = call.work.get_if<EventMarker>()) number = std::max(number, marker->number + 1);
  }
  return number;
}

// Runs as it is the first time, when libraries load what they need; is captured the second time, and one launch from
// then on. What cannot be captured goes on as it is. One run does the calls `times` times.
class GpuRecording final : public Recording {
 public:
  GpuRecording(int gpu, cudaStream_t stream, Cudnn& cudnn, const Natives& natives, std::vector<Call> calls,
               int times = 1)
      : gpu_(gpu),
        stream_(stream),
        times_(times),
        marks_(static_cast<std::size_t>(markers_in(calls))),
        natives_(natives) {
    for (Call& call : calls) {
      const auto* const convolution = call.work.get_if<Convolution>();
      auto plan = convolution ? std::make_unique<CudnnConvolution>(cudnn, *convolution) : nullptr;
      steps_.push_back({.call = std::move(call), .convolution = std::move(plan)});
    }
  }
  ~GpuRecording() override {
    if (graph_) cudaGraphExecDestroy(graph_);
  }

  void run() override {
    check(cudaSetDevice(gpu_), "the choice of the GPU");
    if (!graph_ && runs_++ == 1) capture();
    if (graph_) {
      check(cudaGraphLaunch(graph_, stream_), "the launch of a recorded step");
    } else {
      start_all();
    }
  }

  DeviceMark mark(int number) const override { return {marks_.at(static_cast<std::size_t>(number)).get()}; }

  RecordingFacts facts() const override {
    RecordingFacts facts{.settled = runs_ > 1,
                         .one_launch = graph_ != nullptr,
                         .refusal = refusal_,
                         .refused_kernels = natives_.refusals()};
    for (const Step& step : steps_) {
      if (const auto* const work = step.call.work.get_if<Convolution>()) {
        const CudnnConvolution* const plan = step.convolution.get();
        const OwnRefused own = plan ? plan->own_refused() : OwnRefused{};
        facts.convolutions.push_back(
            {step.call.name, work->direction, plan ? plan->engine() : std::string(), own.why, own.failed});
      }
    }
    return facts;
  }

 private:
  void start_all() {
    for (int time = 0; time < times_; ++time) {
      for (Step& step : steps_) start(step);
    }
  }

  void start(Step& step) {
    if (const auto* const marker = step.call.work.get_if<EventMarker>()) return set(mark(marker->number));
    if (step.convolution && step.convolution->run()) return;
    step.convolution.reset();
    natives_.start(step.call);
  }

  // In a capture, as a node that sets it in each launch, for queues that know nothing of the graph.
  void set(DeviceMark mark) {
    const auto event = static_cast<cudaEvent_t>(mark.event);
    const unsigned flags = captures_ ? cudaEventRecordExternal : cudaEventRecordDefault;
    check(cudaEventRecordWithFlags(event, stream_, flags), "a mark in its work");
  }

  void capture() {
    captures_ = true;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) {
      try {
        start_all();
      } catch (const Error& refused) {
        refusal_ = refused.what();
      }
      error = cudaStreamEndCapture(stream_, &graph);
    }
    captures_ = false;
    if (error == cudaSuccess && refusal_.empty()) error = cudaGraphInstantiate(&graph_, graph, 0);
    if (error != cudaSuccess) {
      graph_ = nullptr;
      if (refusal_.empty()) refusal_ = cudaGetErrorString(error);
    }
    if (graph) cudaGraphDestroy(graph);
    if (!graph_) cudaGetLastError();  // what a capture refuses is no failure of the GPU
  }

  const int gpu_;
  cudaStream_t stream_;
  const int times_;
  const std::vector<Event> marks_;
  std::vector<Step> steps_;
  Natives natives_;
  bool captures_ = false;
  cudaGraphExec_t graph_ = nullptr;
  std::string refusal_;  // of the capture
  int runs_ = 0;
};

class GpuDevice final : public Device {
 public:
  GpuDevice(int index, const std::string& cudnn, const CudaOptions& options, const PlanStore& plans)
      : index_((check(cudaSetDevice(index), "its choice"), index)),
        fuses_(options.fuses),
        functions_(load_cudnn(cudnn)) {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the question for its memory");
    workspace_bytes_ = workspace_for(total);
    workspace_ = allocate(workspace_bytes_);
    const OwnEngines own =
        multiplies_by_wgmma() ? own_engines(options.own_products, options.plans_to_time) : OwnEngines::never;
    const EngineRules rules{
        .tf32 = options.tf32, .deterministic = options.deterministic, .most_workspace = workspace_bytes_, .own = own};
    cudnn_ = std::make_unique<Cudnn>(functions_, stream_.get(), workspace_, rules, options.plans_to_time, plans);
  }
  ~GpuDevice() override {
    cudaSetDevice(index_);  // any thread may let go of the last buffer, also one that has chosen no GPU
    cudnn_.reset();
    release(workspace_);
  }

  std::uint64_t free_bytes() const override {
    use();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the question for its memory");
    const std::uint64_t kept = bytes_for_libraries(total);
    return free > kept ? free - kept : 0;
  }

  std::byte* allocate(std::uint64_t bytes) override {
    use();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(fmt::format("the GPU has no {} MiB of memory left", bytes >> 20),
                  "use a smaller setting 'batch-size'");
    }
    check(error, "a reservation of memory");
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    wait_for_all();
    cudaFree(memory);
  }

  // Page-locked, so that a copy runs beside the thread that began it.
  std::byte* allocate_host(std::uint64_t bytes) override {
    use();
    void* memory = nullptr;
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(fmt::format("this machine has no {} MiB of memory left that can be page-locked", bytes >> 20),
                  "end what else uses its memory, or use a smaller setting 'batch-size'");
    }
    check(error, "a reservation of page-locked memory");
    return static_cast<std::byte*>(memory);
  }
  // Waits for side copies alone, which are all that reads it: a wait for work that another thread records at the moment
  // would spoil that recording.
  void release_host(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    cudaStreamSynchronize(copies_.get());
    cudaFreeHost(memory);
  }
  std::unique_ptr<SideCopy> side_copy() override {
    use();
    return std::make_unique<GpuSideCopy>(index_, stream_.get(), copies_.get());
  }

  // Memory that is not page-locked is copied before this returns; batches, which are, go by side_copy().
  void upload(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "a copy to the GPU");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_.get()), "a copy from the GPU");
    check(cudaStreamSynchronize(stream_.get()), "the work before a copy from the GPU");
  }
  void synchronize() override {
    use();
    check(cudaStreamSynchronize(stream_.get()), "the end of its work");
  }
  DeviceMark mark() override {
    use();
    check(cudaEventRecord(mark_.get(), stream_.get()), "a mark behind its work");
    return {mark_.get()};
  }
  void wait_for(DeviceMark mark) override {
    if (!mark.event) return;
    use();
    check(cudaStreamWaitEvent(stream_.get(), static_cast<cudaEvent_t>(mark.event), 0), "the wait for another queue");
  }
  std::unique_ptr<Recording> record(std::vector<Call> calls) override {
    use();
    return std::make_unique<GpuRecording>(index_, stream_.get(), *cudnn_, natives(), std::move(calls));
  }
  double seconds_of(std::vector<Call> calls, int times) override {
    constexpr int kWarmUp = 2;  // the first settles the plans, the second captures
    constexpr double kMillisecond = 1e-3;
    use();
    GpuRecording recording(index_, stream_.get(), *cudnn_, natives(), std::move(calls), times);
    for (int run = 0; run < kWarmUp; ++run) recording.run();
    const Event begin(cudaEventDefault), end(cudaEventDefault);
    check(cudaEventRecord(begin.get(), stream_.get()), "a mark in its work");
    recording.run();
    check(cudaEventRecord(end.get(), stream_.get()), "a mark in its work");
    synchronize();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "the time between two marks");
    return static_cast<double>(milliseconds) * kMillisecond / times;
  }
  bool fuses(const Convolution& work) const override { return fuses_ && cudnn_->fuses(work); }
  std::uint64_t workspace_bytes() const override { return workspace_bytes_; }

 private:
  // All work of the stream shares the workspace, one after another.
  Natives natives() const { return {stream_.get(), workspace_, workspace_bytes_}; }
  // The caller's thread may be another one than before.
  void use() const { check(cudaSetDevice(index_), "the choice of the GPU"); }

  void wait_for_all() noexcept {
    cudaStreamSynchronize(copies_.get());
    cudaStreamSynchronize(stream_.get());
  }

  const int index_;
  const bool fuses_;
  const CudnnFunctions functions_;
  Stream stream_, copies_;
  Event mark_;
  std::uint64_t workspace_bytes_ = 0;
  std::byte* workspace_ = nullptr;
  std::unique_ptr<Cudnn> cudnn_;
};

}  // namespace

std::shared_ptr<Device> open_gpu(int index, const std::string& cudnn, const CudaOptions& options,
                                 const PlanStore& plans) {
  return std::make_shared<GpuDevice>(index, cudnn, options, plans);
}

}  // namespace dtrain::backend::cuda
