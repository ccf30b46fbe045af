// A compiled graph: operations in order, cut into segments, over tensors with planned places.
//
// The samples of a shard go through a segment in chunks small enough for the core's cache; a segment ends where all
// samples must have passed before any goes on: at the statistics of a batch norm, forward and backward. Several threads
// can share a shard: each takes a contiguous part of the samples through the segment and they meet at its end.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "buffer.hpp"
#include "kernels/kernels.hpp"

namespace dtrain::backend::cpu {

inline std::size_t bytes_of(DType type) { return type == DType::float32 ? 4 : 2; }
inline const TensorKernels& kernels_for(const Kernels& kernels, DType type) {
  return type == DType::bfloat16 ? kernels.bfloat16 : kernels.float32;
}

using TensorId = int;
constexpr TensorId kNoTensor = -1;

// A tensor of the program. `local` ones live within one segment and hold one chunk of one thread, the others hold all
// samples of the shard.
struct Tensor {
  nn::Shape shape;
  DType dtype = DType::float32;
  bool local = false;
  std::size_t offset = 0;  // in the lane's arena, or in the thread's local arena
  std::size_t sample_bytes() const { return static_cast<std::size_t>(shape.size()) * bytes_of(dtype); }
};

class DenseFactors;

// What one thread owns.
struct Worker {
  int id = 0;  // of the pool
  dnnl::stream stream;
  Buffer local, workspace, scratchpad;
};

// What an operation sees: the samples [first, first + count) of a shard on one thread.
struct Context {
  std::span<const Tensor> tensors;
  std::byte* arena = nullptr;         // of the lane
  std::byte* coefficients = nullptr;  // of batch norms, of the lane
  Worker* worker = nullptr;
  HostBatch shard;  // all its samples
  StepKey key;
  float* contribution = nullptr;  // ContributionLayout of this thread
  // Operations that can defer their gradients append the factors of them here, and write nothing.
  bool defers = false;
  std::vector<std::shared_ptr<DenseFactors>> deferred = {};
  float* logits = nullptr;  // [shard.n, classes], in evaluation
  const float* parameters = nullptr;
  const float* statistics = nullptr;  // the running ones, in training
  int first = 0;
  int count = 0;
  // The number of this chunk among those of the segment on this thread. begin() and finish() know only how many there
  // are: 0 on a thread without samples.
  int chunk = 0, chunks = 1;
  bool is_first_chunk() const { return chunk == 0; }
  bool is_last_chunk() const { return chunk + 1 == chunks; }

  void* data(TensorId id) const {
    const Tensor& t = tensors[static_cast<std::size_t>(id)];
    if (t.local) return worker->local.data() + t.offset;
    return arena + t.offset + static_cast<std::size_t>(first) * t.sample_bytes();
  }
  // Sample i of the chunk.
  void* sample(TensorId id, int i) const {
    const Tensor& t = tensors[static_cast<std::size_t>(id)];
    return static_cast<std::byte*>(data(id)) + static_cast<std::size_t>(i) * t.sample_bytes();
  }
  const nn::Shape& shape(TensorId id) const { return tensors[static_cast<std::size_t>(id)].shape; }
};

using Part = FloatRange;  // a range of a contribution's flat buffer

class Op {
 public:
  virtual ~Op() = default;
  std::string name;  // node and direction
  const char* kind = "";
  std::vector<TensorId> reads, writes;
  // The parts of the contribution that it writes whole: each thread by the end of finish(), also one without samples,
  // or the first thread in meet(). They are final, and no longer read, once its segment is over.
  std::vector<Part> gradients;
  bool can_defer = false;  // it appends factors of its gradients where Context::defers says so
  // The write may take the read's memory when no later operation needs the read.
  TensorId in_place_read = kNoTensor, in_place_write = kNoTensor;

  // Called for each number of samples before it is seen, while nothing runs.
  virtual void prepare(int count, int workers) = 0;
  virtual std::size_t scratchpad_bytes() const = 0;
  // The thread's own memory from begin() to meet(); may grow in prepare().
  virtual std::size_t workspace_bytes() const = 0;
  // The weights it streams: chunks are not made smaller than these.
  virtual std::size_t weight_bytes() const = 0;

  virtual void begin(Context&) = 0;   // on each thread, before its first chunk of the segment
  virtual void run(Context&) = 0;     // one chunk
  virtual void finish(Context&) = 0;  // on each thread, after its last chunk
  virtual bool meets() const = 0;
  virtual void meet(std::span<Context>) = 0;  // once, when all threads have finished the segment; only if meets()

  virtual std::string shape_name(int count) const = 0;
  // The weights, or their gradient, as the primitive sees them; 0 where there is none.
  virtual std::size_t packed_bytes() const = 0;
  // Seconds of the same primitive alone on `count` samples, on this thread's memory; 0 where there is none.
  virtual double bare_seconds(Worker&, int count, int repeats) = 0;

 protected:
  friend class Program;
  template <typename T>
  T* workspace(const Context& context) const {
    return context.worker->workspace.as<T>(workspace_offset_);
  }

 private:
  std::size_t workspace_offset_ = 0;
};

// An operation with loops of this folder: no primitive of oneDNN, so nothing to prepare or to compare with.
class LoopOp : public Op {
 public:
  void prepare(int, int) final {}
  std::size_t scratchpad_bytes() const final { return 0; }
  std::size_t weight_bytes() const final { return 0; }
  std::string shape_name(int count) const override;
  std::size_t packed_bytes() const final { return 0; }
  double bare_seconds(Worker&, int, int) final { return 0; }
};

// A LoopOp whose chunks have nothing in common: run() is all that it does.
class ChunkOp : public LoopOp {
 public:
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) final {}
  void finish(Context&) final {}
  bool meets() const final { return false; }
  void meet(std::span<Context>) final {}
};

// A LoopOp that meets to count over all samples: each shard has its row of sums, and what follows needs the rows of its
// own shard, or of all shards of the step where they meet (MeetingSink).
class SumOp : public LoopOp {
 public:
  void finish(Context&) final {}
  bool meets() const final { return true; }
  void meet(std::span<Context> threads) final;

  virtual bool synchronized() const = 0;  // it needs the rows of all shards
  virtual std::size_t row_size() const = 0;
  // Once, when all threads of a shard have finished the segment. A shard without samples has a row of zeros instead.
  virtual void sum_up(std::span<Context> threads, std::span<double> row) = 0;
  // What follows from so many rows, for a shard that has samples.
  virtual void take(const Context& leader, std::span<const double> rows) = 0;
};

struct Segment {
  int first_op = 0, end_op = 0;
  int max_chunk = 1;  // samples
  bool meets = false;
  SumOp* meeting = nullptr;      // its last operation, where that needs the rows of all shards
  std::vector<Part> gradients;   // of its operations that always write theirs
  std::vector<Part> deferrable;  // of its operations that can defer theirs
};

// Pure. The rest of a contribution of `size` floats outside these parts, which are disjoint, in ascending order.
std::vector<Part> parts_outside(std::vector<Part> parts, std::int64_t size);

// n samples in the fewest chunks of at most max_chunk, their sizes differing by at most one, larger ones first.
struct Chunks {
  int n, max_chunk;
  int number() const { return (n + max_chunk - 1) / max_chunk; }
  int first(int index) const { return index * (n / number()) + std::min(index, n % number()); }
  int size(int index) const { return first(index + 1) - first(index); }
};

class Program {
 public:
  TensorId add_tensor(const nn::Shape& shape, DType dtype);
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  std::span<const Tensor> tensors() const { return tensors_; }
  Op& add(std::unique_ptr<Op> op);
  // Cuts segments and plans memory for shards of up to max_samples, on one thread or several. No additions afterwards.
  void plan(int max_samples);

  std::span<const Segment> segments() const { return segments_; }
  Op& op(int index) const { return *ops_[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(ops_.size()); }
  // What no operation declares as its gradient, of a contribution of so many floats: final at the end of the shard.
  std::vector<Part> other_parts(std::int64_t size) const;
  // The gradients that only the first thread of a shard writes: those of operations whose threads meet.
  std::vector<Part> leaders_parts() const;
  std::vector<Part> deferrable_parts() const;
  // Makes the operations ready for a part of n samples on one thread.
  void prepare(int n, int workers);

  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t local_bytes() const { return local_bytes_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  std::size_t scratchpad_bytes() const;

 private:
  void cut_segments(int max_samples);
  // From the operation `first` to the one before `end`.
  Segment segment_of_ops(int first, int end, int max_samples) const;
  int segment_of(int index) const;  // that operation `index` is in
  void place_tensors(int max_samples);
  void place_workspaces();

  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<Segment> segments_;
  std::vector<int> prepared_;
  std::size_t arena_bytes_ = 0, local_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace dtrain::backend::cpu
