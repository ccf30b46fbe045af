// The weights of a convolution or a dense layer, in the layouts that its primitives want, and those primitives.
#pragma once

#include <map>

#include "../buffer.hpp"
#include "../kernels/winograd_kernels.hpp"
#include "../onednn.hpp"

namespace dtrain::backend::cpu {

// One layer's weights and primitives, shared by the training and the evaluation program.
class ProductLayer {
 public:
  // `shape.n` is ignored. Offsets are those of the flat parameter buffer; bias_offset is -1 without bias.
  ProductLayer(Product shape, std::int64_t weight_offset, std::int64_t bias_offset);

  // Made when first asked for; call while nothing runs, on a SingleThreaded thread.
  const Compiled& forward(int n);
  const Compiled& backward_data(int n);
  const Compiled& backward_weights(int n);

  // Brings the packed weights up to date with the flat float32 parameters. Different layers may be packed side by side.
  void pack(const float* parameters, dnnl::stream& stream);
  // For a layer that filters minimally, in the place of forward() and backward_data().
  void transform_forward_weights();
  void transform_backward_weights();
  void mark_stale() { stale_ = true; }
  bool stale() const { return stale_; }
  // What pack() reads and writes.
  std::size_t packing_bytes() const;
  std::size_t packed_bytes() const { return forward_.memory.size() + backward_.memory.size(); }

  const Product& shape() const { return shape_; }
  void* forward_weights() const { return forward_.memory.data(); }
  void* backward_weights_packed() const { return backward_.memory.data(); }
  const dnnl::memory::desc& gradient_layout() const { return gradient_layout_; }
  std::int64_t weight_offset() const { return weight_offset_; }
  std::int64_t bias_offset() const { return bias_offset_; }

 private:
  static constexpr int kLayoutSamples = 8;
  // Weights that are widened still have bfloat16's values: they pass through `rounded` on their way.
  struct Packed {
    dnnl::memory::desc layout;
    Buffer memory, rounded_memory;
    dnnl::reorder round, reorder;
    dnnl::memory from, rounded, to;
    bool is_transformed = false;  // by kWinogradKernels; then the layout is not given
  };
  Product with(int n) const;
  void settle_transformed(Packed& packed);
  void settle_turned();
  void settle(Packed& packed, const dnnl::memory::desc& layout, const dnnl::memory::desc& plain);

  Product shape_;
  std::int64_t weight_offset_, bias_offset_;
  std::map<int, Compiled> forwards_, backward_datas_, backward_weights_;
  Packed forward_, backward_;
  // The weights of a transposed convolution as those of a dense layer.
  Buffer turned_memory_;
  dnnl::reorder turn_;
  dnnl::memory spread_, turned_;
  dnnl::memory::desc gradient_layout_;
  bool stale_ = true;
};

}  // namespace dtrain::backend::cpu
