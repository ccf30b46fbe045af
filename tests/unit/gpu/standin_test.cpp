// The stand-in for CUDA's runtime sees what it is there to see.
#include <algorithm>
#include <thread>

#include "orders.hpp"

namespace dtrain::testing {
namespace {

using cuda_runtime::Order;

constexpr std::size_t kCopiedBytes = 1000;

class Standin : public ::testing::Test {
 protected:
  Standin() { cuda_runtime::change_order(Order::waited_for_only, 0); }
  cudaStream_t stream() {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    streams_.push_back(stream);
    return stream;
  }
  cudaEvent_t event() {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    events_.push_back(event);
    return event;
  }
  char* gpu_memory() {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, kCopiedBytes), cudaSuccess);
    gpu_.push_back(memory);
    return static_cast<char*>(memory);
  }
  char* host_memory() {
    void* memory = nullptr;
    EXPECT_EQ(cudaHostAlloc(&memory, kCopiedBytes, cudaHostAllocDefault), cudaSuccess);
    host_.push_back(memory);
    return static_cast<char*>(memory);
  }
  // What a stream is asked for, in the order in which it was done.
  void ask(cudaStream_t stream, char name) {
    EXPECT_EQ(cuda_runtime::enqueue(stream, "work", [this, name] { done_ += name; }), cudaSuccess);
  }
  std::string finding() {
    const std::vector<std::string> all = cuda_runtime::take_findings();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? "" : all.front();
  }
  ~Standin() override {
    for (cudaStream_t each : streams_) {
      cudaStreamSynchronize(each);
      cudaStreamDestroy(each);
    }
    for (cudaEvent_t each : events_) cudaEventDestroy(each);
    for (void* each : gpu_) cudaFree(each);
    for (void* each : host_) cudaFreeHost(each);
  }
  std::string done_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<void*> gpu_, host_;
};

TEST_F(Standin, DoesNothingBeforeSomebodyWaits) {
  ask(stream(), 'a');
  EXPECT_EQ(done_, "");
  cudaStreamSynchronize(streams_[0]);
  EXPECT_EQ(done_, "a");
}

TEST_F(Standin, KeepsTheOrderOfAStreamAndNoOther) {
  const cudaStream_t first = stream(), second = stream();
  ask(second, 'c');
  for (const char name : {'a', 'b'}) ask(first, name);
  cudaStreamSynchronize(first);
  EXPECT_EQ(done_, "ab");
  cuda_runtime::change_order(Order::others_first, 0);
  ask(first, 'd');
  cudaStreamSynchronize(first);
  EXPECT_EQ(done_, "abcd");
}

TEST_F(Standin, DrawsOtherOrdersFromOtherSeeds) {
  std::vector<std::string> seen;
  const cudaStream_t first = stream(), second = stream();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_runtime::change_order(Order::at_random, seed);
    done_.clear();
    for (const char name : {'a', 'b'}) ask(first, name);
    for (const char name : {'c', 'd'}) ask(second, name);
    cudaStreamSynchronize(first);
    cudaStreamSynchronize(second);
    EXPECT_LT(done_.find('a'), done_.find('b'));
    EXPECT_LT(done_.find('c'), done_.find('d'));
    seen.push_back(done_);
  }
  std::ranges::sort(seen);
  EXPECT_GT(std::ranges::unique(seen).begin() - seen.begin(), 3);
}

TEST_F(Standin, AWaitIsForTheLastRecordBeforeIt) {
  const cudaStream_t first = stream(), second = stream();
  const cudaEvent_t mark = event();
  ask(first, 'a');
  cudaEventRecord(mark, first);
  cudaStreamWaitEvent(second, mark, 0);
  ask(first, 'b');
  cudaEventRecord(mark, first);
  ask(second, 'c');
  cudaStreamSynchronize(second);
  EXPECT_EQ(done_, "ac");
}

TEST_F(Standin, AWaitForAnEventThatWasNeverRecordedIsNone) {
  const cudaStream_t first = stream();
  EXPECT_EQ(cudaStreamWaitEvent(first, event(), 0), cudaSuccess);
  ask(first, 'a');
  cudaStreamSynchronize(first);
  EXPECT_EQ(done_, "a");
}

TEST_F(Standin, QueriesEndWhenTheWorkDoes) {
  const cudaStream_t first = stream();
  ask(first, 'a');
  EXPECT_EQ(cudaStreamQuery(first), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(first), cudaSuccess);
}

TEST_F(Standin, SeesPageLockedMemoryThatChangesUnderACopy) {
  char* const from = host_memory();
  cudaMemcpyAsync(gpu_memory(), from, kCopiedBytes, cudaMemcpyHostToDevice, stream());
  from[kCopiedBytes / 2] ^= 1;
  cudaStreamSynchronize(streams_[0]);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: 1000 bytes of page-locked memory changed before they were copied");
}

TEST_F(Standin, LeavesNothingOfUseWhereACopyGoesBeforeItIsDone) {
  std::vector<char> to(kCopiedBytes, 3);
  char* const from = gpu_memory();
  cudaMemsetAsync(from, 5, kCopiedBytes, stream());
  cudaMemcpyAsync(to.data(), from, kCopiedBytes, cudaMemcpyDeviceToHost, streams_[0]);
  EXPECT_EQ(to, std::vector<char>(kCopiedBytes, static_cast<char>(0xff)));
  cudaStreamSynchronize(streams_[0]);
  EXPECT_EQ(to, std::vector<char>(kCopiedBytes, 5));
}

TEST_F(Standin, RefusesCopiesBehindAnEndAndOfTheWrongSide) {
  char *const gpu = gpu_memory(), *const host = host_memory();
  const cudaStream_t on = stream();
  EXPECT_EQ(cudaMemcpyAsync(gpu + 1, host, kCopiedBytes, cudaMemcpyHostToDevice, on), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: bytes 1 to 1001 of memory of a GPU that holds 1000");
  EXPECT_EQ(cudaMemcpyAsync(host, gpu, kCopiedBytes, cudaMemcpyHostToDevice, on), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: memory of the host instead of a GPU's");
  EXPECT_EQ(cudaMemcpyAsync(gpu + 10, gpu, 20, cudaMemcpyDeviceToDevice, on), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: a copy onto itself");
  cudaSetDevice(1);
  EXPECT_EQ(cudaMemcpyAsync(gpu, host, kCopiedBytes, cudaMemcpyHostToDevice, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: memory of another GPU than the stream's");
}

TEST_F(Standin, SeesWhatIsUsedAfterItsEnd) {
  cudaStream_t on = nullptr;
  cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking);
  cudaStreamDestroy(on);
  EXPECT_EQ(cudaStreamSynchronize(on), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(finding(), "cudaStreamSynchronize: a stream that was destroyed");
  void* memory = nullptr;
  cudaMalloc(&memory, kCopiedBytes);
  cudaFree(memory);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaFree: this was released before");
  EXPECT_EQ(cudaMemcpyAsync(memory, memory, 1, cudaMemcpyDeviceToDevice, stream()), cudaErrorInvalidValue);
  EXPECT_EQ(finding(), "cudaMemcpyAsync: memory of a GPU that was released");
}

TEST_F(Standin, SeesWorkThatWritesBehindAnEnd) {
  void* memory = nullptr;
  cudaMalloc(&memory, kCopiedBytes);
  cuda_runtime::enqueue(stream(), "work", [memory] { static_cast<char*>(memory)[kCopiedBytes] = 0; });
  cudaStreamSynchronize(streams_[0]);
  cudaFree(memory);
  EXPECT_EQ(finding(), "cudaFree: work wrote behind the end of these 1000 bytes");
}

TEST_F(Standin, TellsWhatWasNotGivenBack) {
  EXPECT_TRUE(cuda_runtime::leftovers().empty());
  stream();
  gpu_memory();
  EXPECT_EQ(cuda_runtime::leftovers(), (std::vector<std::string>{"1 streams", "1 reservations"}));
}

using StandinDeathTest = Standin;

TEST_F(StandinDeathTest, NamesTheHostThatTouchesMemoryOfAGpu) {
  char* const memory = gpu_memory();
  EXPECT_DEATH(*memory = 1, "the host touched memory of a GPU of 1000 bytes");
}

TEST_F(StandinDeathTest, NamesWorkOnMemoryThatWasReleased) {
  void* memory = nullptr;
  cudaMalloc(&memory, kCopiedBytes);
  EXPECT_DEATH(
      {
        cudaMemsetAsync(memory, 0, kCopiedBytes, stream());
        cudaFree(memory);
        cudaStreamSynchronize(streams_[0]);
      },
      "work 'filling memory' touched memory of a GPU of 1000 bytes, which was released");
  cudaFree(memory);
}

TEST_F(StandinDeathTest, NamesWorkThatGoesFarBehindAnEnd) {
  char* const memory = gpu_memory();
  EXPECT_DEATH(
      {
        cuda_runtime::enqueue(stream(), "too much", [memory] { memory[kCopiedBytes + 100] = 0; });
        cudaStreamSynchronize(streams_[0]);
      },
      "work 'too much' touched memory that is nobody's, or behind a reservation's end");
}

class StandinCapture : public Standin {
 protected:
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(on_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }
  // What a call in a recording answers, and that it spoils the recording.
  template <typename Call>
  cudaError_t refused(Call call) {
    EXPECT_EQ(cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const cudaError_t answer = call();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(on_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    return answer;
  }
  const cudaStream_t on_ = stream();
};

TEST_F(StandinCapture, DoesWhatWasRecordedInEachLaunchAndNotBefore) {
  cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal);
  ask(on_, 'a');
  ask(on_, 'b');
  const cudaGraphExec_t graph = end();
  cudaStreamSynchronize(on_);
  EXPECT_EQ(done_, "");
  for (int run = 0; run < 2; ++run) EXPECT_EQ(cudaGraphLaunch(graph, on_), cudaSuccess);
  cudaGraphExecDestroy(graph);
  cudaStreamSynchronize(on_);
  EXPECT_EQ(done_, "abab");
  EXPECT_EQ(cuda_runtime::graph_launches(), 2);
}

TEST_F(StandinCapture, RefusesWhatMayNotBeRecorded) {
  void* memory = nullptr;
  const cudaEvent_t mark = event();
  cudaEventRecord(mark, stream());
  EXPECT_EQ(refused([&] { return cudaMalloc(&memory, 1); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refused([&] { return cudaStreamSynchronize(on_); }), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refused([&] { return cudaStreamWaitEvent(on_, mark, 0); }), cudaErrorStreamCaptureIsolation);
}

TEST_F(StandinCapture, LetsOtherThreadsReserveMemory) {
  cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal);
  std::thread([&] { gpu_memory(); }).join();
  cudaGraphExecDestroy(end());
}

TEST_F(StandinCapture, RecordsAnEventForOthersInEachLaunch) {
  const cudaStream_t other = stream();
  const cudaEvent_t mark = event();
  cudaStreamBeginCapture(on_, cudaStreamCaptureModeThreadLocal);
  ask(on_, 'a');
  EXPECT_EQ(cudaEventRecordWithFlags(mark, on_, cudaEventRecordExternal), cudaSuccess);
  ask(on_, 'b');
  const cudaGraphExec_t graph = end();
  cudaStreamWaitEvent(other, mark, 0);  // nothing was recorded yet
  ask(other, 'x');
  cudaGraphLaunch(graph, on_);
  cudaStreamWaitEvent(other, mark, 0);
  ask(other, 'y');
  cudaStreamSynchronize(other);
  EXPECT_EQ(done_, "xay");
  cudaGraphExecDestroy(graph);
}

}  // namespace
}  // namespace dtrain::testing
