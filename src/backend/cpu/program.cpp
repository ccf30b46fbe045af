#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <dtrain/base/error.hpp>

#include "../memory_plan.hpp"

namespace dtrain::backend::cpu {
namespace {

// What one thread's chunk of the largest tensor may take: half a dozen of them share the core's second-level cache.
constexpr std::size_t kChunkBytes = 192 * 1024;

// First and last operation of a tensor.
struct Use {
  int first = 1 << 30, last = -1;
  void at(int op) { first = std::min(first, op), last = std::max(last, op); }
  bool is_never() const { return last < 0; }
};

std::vector<Use> uses_of_tensors(std::span<const std::unique_ptr<Op>> ops, std::size_t tensors) {
  std::vector<Use> uses(tensors);
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = *ops[static_cast<std::size_t>(index)];
    for (const TensorId id : op.reads) uses[static_cast<std::size_t>(id)].at(index);
    for (const TensorId id : op.writes) uses[static_cast<std::size_t>(id)].at(index);
  }
  return uses;
}

// By tensor, the one whose memory it takes: itself, or, behind in-place operations, the first of those that share
// memory. The owner's use is extended to those of all.
std::vector<TensorId> share_in_place(std::span<const std::unique_ptr<Op>> ops, std::span<const Tensor> tensors,
                                     std::vector<Use>& uses) {
  std::vector<TensorId> owner(tensors.size());
  std::iota(owner.begin(), owner.end(), 0);
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = *ops[static_cast<std::size_t>(index)];
    if (op.in_place_read == kNoTensor) continue;
    const auto read = static_cast<std::size_t>(owner[static_cast<std::size_t>(op.in_place_read)]);
    const auto write = static_cast<std::size_t>(op.in_place_write);
    const bool is_used_later = uses[read].last != index;
    if (is_used_later || tensors[read].sample_bytes() != tensors[write].sample_bytes()) continue;
    owner[write] = static_cast<TensorId>(read);
    uses[read].last = uses[write].last;
  }
  return owner;
}

}  // namespace

std::string LoopOp::shape_name(int count) const { return fmt::format("n{}", count); }

void SumOp::meet(std::span<Context> threads) {
  std::vector<double> row(row_size());
  sum_up(threads, row);
  take(threads.front(), row);
}

TensorId Program::add_tensor(const nn::Shape& shape, DType dtype) {
  tensors_.push_back({shape, dtype});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

Op& Program::add(std::unique_ptr<Op> op) {
  ops_.push_back(std::move(op));
  return *ops_.back();
}

void Program::cut_segments(int max_samples) {
  int first = 0;
  for (int index = 0; index < size(); ++index) {
    if (!op(index).meets() && index + 1 < size()) continue;
    segments_.push_back(segment_of_ops(first, index + 1, max_samples));
    first = index + 1;
  }
}

// A chunk of the largest tensor fits into the cache, or is as large as the weights that stream past it.
Segment Program::segment_of_ops(int first, int end, int max_samples) const {
  Segment segment;
  segment.first_op = first;
  segment.end_op = end;
  std::size_t tensor_bytes = 1, weight_bytes = 0;
  for (int index = first; index < end; ++index) {
    const Op& each = op(index);
    for (const auto* ids : {&each.reads, &each.writes}) {
      for (const TensorId id : *ids) tensor_bytes = std::max(tensor_bytes, tensor(id).sample_bytes());
    }
    weight_bytes = std::max(weight_bytes, each.weight_bytes());
    std::vector<Part>& parts = each.can_defer ? segment.deferrable : segment.gradients;
    parts.insert(parts.end(), each.gradients.begin(), each.gradients.end());
  }
  const std::size_t samples = std::max(kChunkBytes, weight_bytes) / tensor_bytes;
  segment.max_chunk = static_cast<int>(std::clamp<std::size_t>(samples, 1, static_cast<std::size_t>(max_samples)));

  Op& last = op(end - 1);
  segment.meets = last.meets();
  auto* const sums = dynamic_cast<SumOp*>(&last);
  if (sums && sums->synchronized()) segment.meeting = sums;
  return segment;
}

std::vector<Part> parts_outside(std::vector<Part> parts, std::int64_t size) {
  std::ranges::sort(parts, {}, &Part::first);
  std::vector<Part> others;
  std::int64_t next = 0;
  for (const Part& part : parts) {
    DTRAIN_CHECK(part.first >= next, "two operations write the same gradient");
    if (part.first > next) others.push_back({next, part.first - next});
    next = part.first + part.size;
  }
  if (next < size) others.push_back({next, size - next});
  return others;
}

int Program::segment_of(int index) const {
  const auto after = std::ranges::upper_bound(segments_, index, {}, &Segment::first_op);
  return static_cast<int>(after - segments_.begin()) - 1;
}

std::vector<Part> Program::other_parts(std::int64_t size) const {
  std::vector<Part> gradients = deferrable_parts();
  for (const Segment& segment : segments_) {
    gradients.insert(gradients.end(), segment.gradients.begin(), segment.gradients.end());
  }
  return parts_outside(std::move(gradients), size);
}

std::vector<Part> Program::deferrable_parts() const {
  std::vector<Part> parts;
  for (const Segment& segment : segments_) {
    parts.insert(parts.end(), segment.deferrable.begin(), segment.deferrable.end());
  }
  return parts;
}

std::vector<Part> Program::leaders_parts() const {
  std::vector<Part> parts;
  for (const auto& op : ops_) {
    if (op->meets()) parts.insert(parts.end(), op->gradients.begin(), op->gradients.end());
  }
  return parts;
}

void Program::plan(int max_samples) {
  cut_segments(max_samples);
  place_tensors(max_samples);
}

// A tensor that lives within one segment takes a chunk of a thread's memory, from its first operation to its last. Any
// other takes all samples of the shard in the lane's memory, from its first segment to its last.
void Program::place_tensors(int max_samples) {
  std::vector<Use> uses = uses_of_tensors(ops_, tensors_.size());
  const std::vector<TensorId> owner = share_in_place(ops_, tensors_, uses);

  std::vector<Lifetime> full(tensors_.size()), local(tensors_.size());
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (owner[id] != static_cast<TensorId>(id) || uses[id].is_never()) continue;
    Tensor& tensor = tensors_[id];
    const int first = segment_of(uses[id].first), last = segment_of(uses[id].last);
    tensor.local = first == last;
    if (tensor.local) {
      const auto chunk = static_cast<std::size_t>(segments_[static_cast<std::size_t>(first)].max_chunk);
      local[id] = {chunk * tensor.sample_bytes(), uses[id].first, uses[id].last};
    } else {
      full[id] = {static_cast<std::size_t>(max_samples) * tensor.sample_bytes(), first, last};
    }
  }

  const Places full_places = plan_places(full, kAlignment), local_places = plan_places(local, kAlignment);
  arena_bytes_ = full_places.bytes;
  local_bytes_ = local_places.bytes;
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const auto memory = static_cast<std::size_t>(owner[id]);
    tensors_[id].local = tensors_[memory].local;
    tensors_[id].offset = (tensors_[id].local ? local_places : full_places).offsets[memory];
  }
}

void Program::prepare(int n, int workers) {
  if (n == 0 || std::ranges::find(prepared_, n) != prepared_.end()) return;
  for (const Segment& segment : segments_) {
    const Chunks chunks{n, segment.max_chunk};
    for (int index = segment.first_op; index < segment.end_op; ++index) {
      op(index).prepare(chunks.size(0), workers);
      op(index).prepare(chunks.size(chunks.number() - 1), workers);
    }
  }
  prepared_.push_back(n);
  place_workspaces();
}

// Anew after each preparation: primitives say what they need only when they are made. Nothing lives here between
// segments.
void Program::place_workspaces() {
  for (const Segment& segment : segments_) {
    std::size_t bytes = 0;
    for (int index = segment.first_op; index < segment.end_op; ++index) {
      op(index).workspace_offset_ = bytes;
      bytes += aligned(op(index).workspace_bytes());
    }
    workspace_bytes_ = std::max(workspace_bytes_, bytes);
  }
}

std::size_t Program::scratchpad_bytes() const {
  std::size_t bytes = 0;
  for (const auto& op : ops_) bytes = std::max(bytes, op->scratchpad_bytes());
  return bytes;
}

}  // namespace dtrain::backend::cpu
