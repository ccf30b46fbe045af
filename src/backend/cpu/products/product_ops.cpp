#include "product_ops.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "../rows.hpp"
#include "../thread_clock.hpp"
#include "pixel_matrix.hpp"
#include "primitive_call.hpp"

namespace dtrain::backend::cpu {
namespace {

// Values near 1 of both signs, as float32 or as bfloat16: zeros would let the processor run cooler and faster.
void fill_with_numbers(const Buffer& buffer) {
  for (std::size_t k = 0; k < buffer.size() / sizeof(std::uint16_t); ++k) {
    const auto mixed = static_cast<std::uint32_t>(k) * 2654435761u;
    buffer.as<std::uint16_t>()[k] = static_cast<std::uint16_t>((mixed >> 31) << 15 | 0x3f00u | (mixed >> 8 & 0xffu));
  }
}

// What the three directions share: a primitive for each number of samples and each thread.
class ProductOp : public Op {
 public:
  // `by_pixels`: the tensor of which the primitive wants only the pixels that the layer uses, or kNoTensor.
  ProductOp(ProductLayer& layer, TensorId by_pixels)
      : layer_(layer), by_pixels_(layer.shape().by_matrices && is_strided(layer.shape()) ? by_pixels : kNoTensor) {
    kind = layer.shape().dense ? "dense" : "convolution";
  }

  void prepare(int count, int workers) override {
    if (calls_.contains(count)) return;
    const Compiled& compiled = compile(count);
    scratchpad_ = std::max(scratchpad_, aligned(compiled.scratchpad));
    packed_bytes_ = compiled.weights.layout.get_size();
    if (layer_.shape().widened || by_pixels_ != kNoTensor) {
      first_copy_ = std::max(first_copy_, aligned(compiled.first.layout.get_size()));
      second_copy_ = std::max(second_copy_, aligned(compiled.second.layout.get_size()));
    }
    auto& calls = calls_[count];
    for (int worker = 0; worker < workers; ++worker) calls.push_back(make_call(compiled));
  }

  std::size_t scratchpad_bytes() const override { return scratchpad_ + first_copy_ + second_copy_; }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const final { return packed_bytes_; }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }

  bool meets() const final { return false; }
  void meet(std::span<Context>) final {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    Call& call = call_for(worker, count);
    Buffer one(call.bytes(0)), two(call.bytes(1)), weights(call.bytes(2)), bias(call.bytes(2));
    for (const Buffer* b : {&one, &two, &weights, &bias}) fill_with_numbers(*b);
    const double seconds = median_seconds(repeats, [&] {
      for (int k = 0; k < kBareCalls; ++k) call(worker, one.data(), two.data(), weights.data(), bias.as<float>());
    });
    return seconds / kBareCalls;
  }

 protected:
  virtual const Compiled& compile(int count) = 0;
  virtual Call make_call(const Compiled& compiled) const = 0;
  Call& call_for(const Worker& worker, int count) {
    return calls_.find(count)->second[static_cast<std::size_t>(worker.id)];
  }

  // The chunk of a tensor as the primitive wants it: itself, or a copy in the scratchpad, of float32 numbers or of the
  // pixels in use.
  void* first(Context& c, TensorId id) const { return is_copied(c, id) ? first_copy(c) : c.data(id); }
  void* second(Context& c, TensorId id) const { return is_copied(c, id) ? second_copy(c) : c.data(id); }
  void copy_in(Context& c, TensorId id, void* place) const {
    if (id == by_pixels_) gather_pixels(layer_.shape(), c.count, c.data(id), place);
    if (is_widened(c, id)) to_float_(c.data(id), static_cast<float*>(place), elements(c, id));
  }
  void copy_out(Context& c, const void* place, TensorId id) const {
    if (id == by_pixels_) scatter_pixels(layer_.shape(), c.count, place, c.data(id));
    if (is_widened(c, id)) from_float_(static_cast<const float*>(place), c.data(id), elements(c, id));
  }

  ProductLayer& layer_;

 private:
  static constexpr int kBareCalls = 4;
  bool is_copied(const Context& c, TensorId id) const { return id == by_pixels_ || is_widened(c, id); }
  bool is_widened(const Context& c, TensorId id) const {
    return layer_.shape().widened && c.tensors[static_cast<std::size_t>(id)].dtype == DType::bfloat16;
  }
  std::int64_t elements(const Context& c, TensorId id) const { return c.count * c.shape(id).size(); }
  void* first_copy(Context& c) const { return c.worker->scratchpad.data() + scratchpad_; }
  void* second_copy(Context& c) const { return c.worker->scratchpad.data() + scratchpad_ + first_copy_; }

  TensorId by_pixels_;
  std::map<int, std::vector<Call>> calls_;
  std::size_t scratchpad_ = 0, packed_bytes_ = 0;
  std::size_t first_copy_ = 0, second_copy_ = 0;  // bytes, after the primitive's own scratchpad
  decltype(TensorKernels::to_float) to_float_ = select_kernels().bfloat16.to_float;
  decltype(TensorKernels::from_float) from_float_ = select_kernels().bfloat16.from_float;
};

class ProductForward final : public ProductOp {
 public:
  ProductForward(ProductLayer& layer, TensorId source, TensorId result)
      : ProductOp(layer, kNoTensor), source_(source), result_(result) {
    reads = {source};
    writes = {result};
  }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void finish(Context&) override {}
  void run(Context& c) override {
    const float* bias = layer_.bias_offset() >= 0 ? c.parameters + layer_.bias_offset() : nullptr;
    void* const source = first(c, source_);
    void* const result = second(c, result_);
    copy_in(c, source_, source);
    call_for(*c.worker, c.count)(*c.worker, source, result, layer_.forward_weights(), bias);
    copy_out(c, result, result_);
  }

 protected:
  const Compiled& compile(int count) override { return layer_.forward(count); }
  Call make_call(const Compiled& compiled) const override {
    return {compiled, layer_.shape().bias ? layer_.shape().out.c : 0};
  }

 private:
  TensorId source_, result_;
};

class ProductBackwardData final : public ProductOp {
 public:
  ProductBackwardData(ProductLayer& layer, TensorId gradient, TensorId source_gradient)
      : ProductOp(layer, source_gradient), gradient_(gradient), source_gradient_(source_gradient) {
    reads = {gradient};
    writes = {source_gradient};
  }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void finish(Context&) override {}
  void run(Context& c) override {
    void* const gradient = first(c, gradient_);
    void* const result = second(c, source_gradient_);
    copy_in(c, gradient_, gradient);
    call_for(*c.worker, c.count)(*c.worker, gradient, result, layer_.backward_weights_packed());
    copy_out(c, result, source_gradient_);
  }

 protected:
  const Compiled& compile(int count) override { return layer_.backward_data(count); }
  Call make_call(const Compiled& compiled) const override { return {compiled, 0}; }

 private:
  TensorId gradient_, source_gradient_;
};

// oneDNN overwrites the weights' gradient: chunks after the first go to a second buffer and are added. A product of
// matrices has the layout of the contribution, where its sum is made.
class ProductBackwardWeights final : public ProductOp {
 public:
  ProductBackwardWeights(ProductLayer& layer, TensorId source, TensorId gradient)
      : ProductOp(layer, source), source_(source), gradient_(gradient) {
    reads = {source, gradient};
    gradients = {
        {layer.weight_offset(), static_cast<std::int64_t>(layer.shape().plain_weights().get_size() / sizeof(float))}};
  }

  void prepare(int count, int workers) override {
    ProductOp::prepare(count, workers);
    while (static_cast<int>(reorders_.size()) < workers) reorders_.emplace_back(layer_);
  }
  std::size_t workspace_bytes() const override { return (in_place() ? 1 : 2) * (kBefore + layout_bytes()); }

  void begin(Context&) override {}
  void run(Context& c) override {
    float* const to = c.is_first_chunk() ? sum(c) : term(c);
    void* const source = first(c, source_);
    void* const gradient = second(c, gradient_);
    copy_in(c, source_, source);
    copy_in(c, gradient_, gradient);
    call_for(*c.worker, c.count)(*c.worker, source, gradient, to);
    if (!c.is_first_chunk()) {
      kernels_.accumulate(to, sum(c), static_cast<std::int64_t>(layer_.gradient_layout().get_size() / sizeof(float)));
    }
  }
  void finish(Context& c) override {
    if (c.chunks == 0) {
      std::memset(gradient_of(c), 0, layer_.shape().plain_weights().get_size());
    } else if (!in_place()) {
      reorders_[static_cast<std::size_t>(c.worker->id)](c.worker->stream, sum(c), gradient_of(c));
    }
  }

 protected:
  const Compiled& compile(int count) override { return layer_.backward_weights(count); }
  Call make_call(const Compiled& compiled) const override { return {compiled, 0}; }

 private:
  // From the primitive's layout to the flat buffer's.
  struct Reorder {
    explicit Reorder(const ProductLayer& layer)
        : from(layer.gradient_layout(), cpu_engine(), nullptr),
          to(layer.shape().plain_weights(), cpu_engine(), nullptr),
          reorder(from, to) {}
    void operator()(dnnl::stream& stream, float* source, float* target) {
      from.set_data_handle(source);
      to.set_data_handle(target);
      reorder.execute(stream, from, to);
    }
    dnnl::memory from, to;
    dnnl::reorder reorder;
  };

  // The sum of the chunks, and the term to be added to it. For AMX, oneDNN 2.6 reads and writes up to 3 KiB before the
  // gradient of a 3x3 convolution of wide pictures; what it finds there it changes only if that is no normal number.
  static constexpr std::size_t kBefore = 4096;
  std::size_t layout_bytes() const { return aligned(layer_.gradient_layout().get_size()); }
  float* room(Context& c, std::size_t index) const {
    return workspace<float>(c) + (index * (kBefore + layout_bytes()) + kBefore) / sizeof(float);
  }
  float* term(Context& c) const { return room(c, 0); }
  float* sum(Context& c) const { return in_place() ? gradient_of(c) : room(c, 1); }
  float* gradient_of(Context& c) const { return c.contribution + layer_.weight_offset(); }
  bool in_place() const { return layer_.shape().by_matrices; }

  TensorId source_, gradient_;
  std::vector<Reorder> reorders_;
  const Kernels& kernels_ = select_kernels();
};

class BiasGradient final : public LoopOp {
 public:
  BiasGradient(Part bias, const TensorKernels& kernels, TensorId gradient)
      : kernels_(kernels), gradient_(gradient), offset_(bias.first), channels_(static_cast<int>(bias.size)) {
    kind = "bias_gradient";
    reads = {gradient};
    gradients = {bias};
  }
  std::size_t workspace_bytes() const override {
    return sizeof(double) * static_cast<std::size_t>(row_width(channels_));
  }
  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }
  void run(Context& c) override {
    kernels_.column_sums(c.data(gradient_), rows_of(c.shape(gradient_), c.count), workspace<double>(c));
  }
  void finish(Context& c) override {
    const RepeatedChannels in_row(channels_);
    const double* const sums = workspace<double>(c);
    for (int channel = 0; channel < channels_; ++channel) {
      c.contribution[offset_ + channel] = static_cast<float>(in_row.sum(sums, channel));
    }
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

 private:
  const TensorKernels& kernels_;
  TensorId gradient_;
  std::int64_t offset_;
  int channels_;
};

}  // namespace

std::unique_ptr<Op> make_product_forward(ProductLayer& layer, TensorId source, TensorId result) {
  return std::make_unique<ProductForward>(layer, source, result);
}
std::unique_ptr<Op> make_product_backward_data(ProductLayer& layer, TensorId gradient, TensorId source_gradient) {
  return std::make_unique<ProductBackwardData>(layer, gradient, source_gradient);
}
std::unique_ptr<Op> make_product_backward_weights(ProductLayer& layer, TensorId source, TensorId gradient) {
  return std::make_unique<ProductBackwardWeights>(layer, source, gradient);
}
std::unique_ptr<Op> make_bias_gradient(Part bias, const TensorKernels& kernels, TensorId gradient) {
  return std::make_unique<BiasGradient>(bias, kernels, gradient);
}

}  // namespace dtrain::backend::cpu
