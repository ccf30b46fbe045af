// The weights of a convolution or a dense layer, in the layouts that its primitives want, and those primitives.
#pragma once

#include <map>
#include <string>

#include "../buffer.hpp"
#include "../kernels/fused_kernels.hpp"
#include "../onednn.hpp"

namespace dtrain::backend::cpu {

enum class Direction { forward, backward };

// Kernels of this folder with a layout of their own for a direction's weights.
enum class OwnKernels { none, minimal_filtering, tiles };

// One layer's weights and primitives, shared by the training and the evaluation program.
class ProductLayer {
 public:
  // `shape.n` is ignored. Offsets are those of the flat parameter buffer; bias_offset is -1 without bias.
  ProductLayer(Product shape, std::int64_t weight_offset, std::int64_t bias_offset);

  // Made when first asked for; call while nothing runs, on a SingleThreaded thread.
  const Compiled& forward(int n);
  const Compiled& backward_data(int n);
  const Compiled& backward_weights(int n);

  // Brings the weights that a direction has packed up to date with the flat float32 parameters. Those of different
  // layers and directions may be packed side by side.
  void pack(Direction direction, const float* parameters, dnnl::stream& stream);
  // Instead of forward() or backward_data(), where these kernels compute the direction.
  void pack_for(Direction direction, OwnKernels kernels);
  void mark_stale() { forward_.stale = backward_.stale = true; }
  bool stale(Direction direction) const { return packed(direction).stale; }
  // What pack() reads and writes; 0 where the direction has nothing packed.
  std::size_t packing_bytes(Direction direction) const;
  std::size_t packed_bytes() const { return forward_.memory.size() + backward_.memory.size(); }

  const Product& shape() const { return shape_; }
  std::string shape_name(int count) const { return with(count).shape_name(); }
  void* forward_weights() const { return forward_.memory.data(); }
  void* backward_weights_packed() const { return backward_.memory.data(); }
  const dnnl::memory::desc& gradient_layout() const { return gradient_layout_; }
  std::int64_t weight_offset() const { return weight_offset_; }
  std::int64_t bias_offset() const { return bias_offset_; }

 private:
  static constexpr int kLayoutSamples = 8;
  // One direction's weights. They come from the flat parameters and pass through up to three steps:
  //   turn     of a transposed convolution: spread, as the flat buffer has them, to turned, rows of a dense layer
  //   round    where they are widened: from to rounded, for they still have bfloat16's values
  //   reorder  from or rounded to `to`, the layout that the primitive wants
  struct Packed {
    dnnl::memory::desc layout;
    Buffer memory, turned_memory, rounded_memory;
    dnnl::reorder turn, round, reorder;
    dnnl::memory spread, turned, from, rounded, to;
    OwnKernels own = OwnKernels::none;  // other than none: the layout is not given
    bool stale = true;
  };
  const Packed& packed(Direction direction) const { return direction == Direction::forward ? forward_ : backward_; }
  Packed& packed(Direction direction) { return direction == Direction::forward ? forward_ : backward_; }
  Product with(int n) const;
  // Settle what pack() will do, in this layout for all numbers of samples.
  void settle_turned(Packed& packed);
  void settle_rounded(Packed& packed);
  void settle(Packed& packed, const dnnl::memory::desc& layout, const dnnl::memory::desc& plain);
  void pack_in_layout(Packed& packed, float* weights, dnnl::stream& stream) const;
  void pack_own(Direction direction, const float* weights);

  Product shape_;
  std::int64_t weight_offset_, bias_offset_;
  std::map<int, Compiled> forwards_, backward_datas_, backward_weights_;
  Packed forward_, backward_;
  dnnl::memory::desc gradient_layout_;
};

}  // namespace dtrain::backend::cpu
