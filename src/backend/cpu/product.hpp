// Convolutions and dense layers: oneDNN primitives around weights kept in the layouts the primitives want.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "onednn.hpp"
#include "program.hpp"

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
  void mark_stale() { stale_ = true; }
  bool stale() const { return stale_; }
  std::size_t packed_bytes() const { return forward_.memory.size() + backward_.memory.size(); }

  const Product& shape() const { return shape_; }
  void* forward_weights() const { return forward_.memory.data(); }
  void* backward_weights_packed() const { return backward_.memory.data(); }
  const dnnl::memory::desc& gradient_layout() const { return gradient_layout_; }
  std::int64_t weight_offset() const { return weight_offset_; }
  std::int64_t bias_offset() const { return bias_offset_; }

 private:
  struct Packed {
    dnnl::memory::desc layout;
    Buffer memory;
    dnnl::reorder reorder;
    dnnl::memory from, to;
  };
  Product with(int n) const;
  void settle(Packed& packed, const dnnl::memory::desc& layout);

  Product shape_;
  std::int64_t weight_offset_, bias_offset_;
  std::map<int, Compiled> forwards_, backward_datas_, backward_weights_;
  Packed forward_, backward_;
  dnnl::memory::desc gradient_layout_;
  bool stale_ = true;
};

std::unique_ptr<Op> make_product_forward(ProductLayer& layer, TensorId source, TensorId result);
std::unique_ptr<Op> make_product_backward_data(ProductLayer& layer, TensorId gradient, TensorId source_gradient);
std::unique_ptr<Op> make_product_backward_weights(ProductLayer& layer, TensorId source, TensorId gradient);
std::unique_ptr<Op> make_bias_gradient(const ProductLayer& layer, const TensorKernels& kernels, TensorId gradient);

}  // namespace dtrain::backend::cpu
