#include "product.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "rows.hpp"
#include "thread_clock.hpp"

namespace dtrain::backend::cpu {

ProductLayer::ProductLayer(Product shape, std::int64_t weight_offset, std::int64_t bias_offset)
    : shape_(shape), weight_offset_(weight_offset), bias_offset_(bias_offset) {}

Product ProductLayer::with(int n) const {
  Product p = shape_;
  p.n = n;
  return p;
}

// The layout of the first primitive is kept for all: weights are packed once, whatever the number of samples.
void ProductLayer::settle(Packed& packed, const dnnl::memory::desc& layout) {
  if (is_given(packed.layout)) return;
  packed.layout = layout;
  packed.memory = Buffer(layout.get_size());
  packed.from = dnnl::memory(shape_.plain_weights(), cpu_engine(), nullptr);
  packed.to = dnnl::memory(layout, cpu_engine(), packed.memory.data());
  packed.reorder = dnnl::reorder(packed.from, packed.to);
  stale_ = true;
}

const Compiled& ProductLayer::forward(int n) {
  const auto [entry, fresh] = forwards_.try_emplace(n);
  if (fresh) {
    entry->second = compile_forward(with(n), forward_.layout);
    settle(forward_, entry->second.weights);
  }
  return entry->second;
}

const Compiled& ProductLayer::backward_data(int n) {
  const auto [entry, fresh] = backward_datas_.try_emplace(n);
  if (fresh) {
    entry->second = compile_backward_data(with(n), backward_.layout);
    settle(backward_, entry->second.weights);
  }
  return entry->second;
}

const Compiled& ProductLayer::backward_weights(int n) {
  const auto [entry, fresh] = backward_weights_.try_emplace(n);
  if (fresh) {
    entry->second = compile_backward_weights(with(n), gradient_layout_);
    gradient_layout_ = entry->second.weights;
  }
  return entry->second;
}

void ProductLayer::pack(const float* parameters, dnnl::stream& stream) {
  for (Packed* packed : {&forward_, &backward_}) {
    if (!is_given(packed->layout)) continue;
    packed->from.set_data_handle(const_cast<float*>(parameters + weight_offset_));
    packed->reorder.execute(stream, packed->from, packed->to);
  }
  stale_ = false;
}

namespace {

// One primitive with memory objects of its own, so that threads can run it side by side.
class Call {
 public:
  // bias_channels is 0 without bias.
  Call(const Compiled& compiled, int first, int second, int weights, int bias_channels)
      : primitive_(compiled.primitive) {
    add(first, compiled.first);
    add(second, compiled.second);
    add(weights, compiled.weights);
    if (compiled.scratchpad > 0) {
      const auto bytes = static_cast<dnnl::memory::dim>(compiled.scratchpad);
      scratchpad_ = static_cast<int>(memories_.size());
      add(DNNL_ARG_SCRATCHPAD, {{bytes}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::x});
    }
    if (bias_channels > 0) {
      bias_ = static_cast<int>(memories_.size());
      add(DNNL_ARG_BIAS, {{bias_channels}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x});
    }
  }

  void operator()(Worker& worker, void* first, void* second, void* weights, const float* bias = nullptr) {
    memories_[0].set_data_handle(first);
    memories_[1].set_data_handle(second);
    memories_[2].set_data_handle(weights);
    if (scratchpad_ >= 0) memories_[static_cast<std::size_t>(scratchpad_)].set_data_handle(worker.scratchpad.data());
    if (bias_ >= 0) memories_[static_cast<std::size_t>(bias_)].set_data_handle(const_cast<float*>(bias));
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), worker.stream.get(),
                                                   static_cast<int>(arguments_.size()), arguments_.data()),
                            "a oneDNN primitive failed");
  }

  std::size_t bytes(int memory) const { return memories_[static_cast<std::size_t>(memory)].get_desc().get_size(); }

 private:
  void add(int argument, const dnnl::memory::desc& desc) {
    memories_.emplace_back(desc, cpu_engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }

  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int scratchpad_ = -1, bias_ = -1;
};

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
  explicit ProductOp(ProductLayer& layer) : layer_(layer) { kind = layer.shape().dense ? "dense" : "convolution"; }

  void prepare(int count, int workers) override {
    if (calls_.contains(count)) return;
    const Compiled& compiled = compile(count);
    scratchpad_ = std::max(scratchpad_, compiled.scratchpad);
    auto& calls = calls_[count];
    for (int worker = 0; worker < workers; ++worker) calls.push_back(make_call(compiled));
  }

  std::size_t scratchpad_bytes() const override { return scratchpad_; }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::string shape_name(int count) const override {
    Product p = layer_.shape();
    p.n = count;
    return p.shape_name();
  }

  double bare_seconds(Worker& worker, int count, int repeats) override {
    Call& call = call_for(worker, count);
    Buffer first(call.bytes(0)), second(call.bytes(1)), weights(call.bytes(2)), bias(call.bytes(2));
    for (const Buffer* b : {&first, &second, &weights, &bias}) fill_with_numbers(*b);
    const auto once = [&] { call(worker, first.data(), second.data(), weights.data(), bias.as<float>()); };
    once();
    std::vector<double> seconds;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const double start = thread_seconds();
      for (int k = 0; k < kBareCalls; ++k) once();
      seconds.push_back((thread_seconds() - start) / kBareCalls);
    }
    std::ranges::nth_element(seconds, seconds.begin() + repeats / 2);
    return seconds[static_cast<std::size_t>(repeats / 2)];
  }

 protected:
  virtual const Compiled& compile(int count) = 0;
  virtual Call make_call(const Compiled& compiled) const = 0;
  Call& call_for(const Worker& worker, int count) {
    return calls_.find(count)->second[static_cast<std::size_t>(worker.id)];
  }

  ProductLayer& layer_;

 private:
  static constexpr int kBareCalls = 4;
  std::map<int, std::vector<Call>> calls_;
  std::size_t scratchpad_ = 0;
};

class ProductForward final : public ProductOp {
 public:
  ProductForward(ProductLayer& layer, TensorId source, TensorId result)
      : ProductOp(layer), source_(source), result_(result) {
    reads = {source};
    writes = {result};
  }
  void run(Context& c) override {
    const float* bias = layer_.bias_offset() >= 0 ? c.parameters + layer_.bias_offset() : nullptr;
    call_for(*c.worker, c.count)(*c.worker, c.data(source_), c.data(result_), layer_.forward_weights(), bias);
  }

 protected:
  const Compiled& compile(int count) override { return layer_.forward(count); }
  Call make_call(const Compiled& compiled) const override {
    return {compiled, DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS, layer_.shape().bias ? layer_.shape().out.c : 0};
  }

 private:
  TensorId source_, result_;
};

class ProductBackwardData final : public ProductOp {
 public:
  ProductBackwardData(ProductLayer& layer, TensorId gradient, TensorId source_gradient)
      : ProductOp(layer), gradient_(gradient), source_gradient_(source_gradient) {
    reads = {gradient};
    writes = {source_gradient};
  }
  void run(Context& c) override {
    call_for(*c.worker, c.count)(*c.worker, c.data(gradient_), c.data(source_gradient_),
                                 layer_.backward_weights_packed());
  }

 protected:
  const Compiled& compile(int count) override { return layer_.backward_data(count); }
  Call make_call(const Compiled& compiled) const override {
    return {compiled, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0};
  }

 private:
  TensorId gradient_, source_gradient_;
};

// oneDNN overwrites the weights' gradient: chunks after the first go to a second buffer and are added.
class ProductBackwardWeights final : public ProductOp {
 public:
  ProductBackwardWeights(ProductLayer& layer, TensorId source, TensorId gradient)
      : ProductOp(layer), source_(source), gradient_(gradient) {
    reads = {source, gradient};
  }

  void prepare(int count, int workers) override {
    ProductOp::prepare(count, workers);
    while (static_cast<int>(reorders_.size()) < workers) reorders_.emplace_back(layer_);
  }
  // Twice what the plain layout takes is more than any layout of the library needs for a sum and a term.
  std::size_t workspace_bytes() const override { return 2 * half_bytes(); }

  void begin(Context& c) override { started(c) = 0; }
  void run(Context& c) override {
    float* const sum = workspace<float>(c) + kHeader;
    float* const term = sum + half_bytes() / sizeof(float) - kHeader;
    const bool fresh = started(c) == 0;
    call_for(*c.worker, c.count)(*c.worker, c.data(source_), c.data(gradient_), fresh ? sum : term);
    if (!fresh)
      kernels_.accumulate(term, sum, static_cast<std::int64_t>(layer_.gradient_layout().get_size() / sizeof(float)));
    started(c) = 1;
  }
  void finish(Context& c) override {
    float* const out = c.contribution + layer_.weight_offset();
    if (started(c) == 0) {
      std::memset(out, 0, layer_.shape().plain_weights().get_size());
      return;
    }
    reorders_[static_cast<std::size_t>(c.worker->id)](c.worker->stream, workspace<float>(c) + kHeader, out);
  }

 protected:
  const Compiled& compile(int count) override { return layer_.backward_weights(count); }
  Call make_call(const Compiled& compiled) const override {
    return {compiled, DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, 0};
  }

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

  static constexpr std::size_t kHeader = kAlignment / sizeof(float);
  std::size_t half_bytes() const { return kAlignment + aligned(padded_weight_bytes()); }
  // Layouts of the library pad channels to whole vectors.
  std::size_t padded_weight_bytes() const {
    const auto up = [](dnnl::memory::dim extent) { return (extent + 15) / 16 * 16; };
    const auto dims = layer_.shape().weight_dims();
    if (dims.size() == 5 && dims[1] == 1 && dims[2] == 1) {
      return static_cast<std::size_t>(up(dims[0]) * dims[3] * dims[4]) * sizeof(float);
    }
    dnnl::memory::dim elements = 1;
    for (std::size_t k = 0; k < dims.size(); ++k) elements *= k + 2 < dims.size() ? up(dims[k]) : dims[k];
    return static_cast<std::size_t>(elements) * sizeof(float);
  }
  std::int32_t& started(Context& c) const { return *workspace<std::int32_t>(c); }

  TensorId source_, gradient_;
  std::vector<Reorder> reorders_;
  const Kernels& kernels_ = select_kernels();
};

class BiasGradient final : public Op {
 public:
  BiasGradient(const ProductLayer& layer, const TensorKernels& kernels, TensorId gradient)
      : layer_(layer), kernels_(kernels), gradient_(gradient), channels_(layer.shape().out.c) {
    kind = "bias_gradient";
    reads = {gradient};
  }
  std::size_t workspace_bytes() const override {
    return sizeof(double) * static_cast<std::size_t>(row_width(channels_));
  }
  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }
  void run(Context& c) override {
    const nn::Shape& s = c.shape(gradient_);
    kernels_.column_sums(c.data(gradient_), rows_of(std::int64_t{c.count} * s.h * s.w, s.c), workspace<double>(c));
  }
  void finish(Context& c) override {
    const double* const sums = workspace<double>(c);
    const int width = row_width(channels_);
    for (int channel = 0; channel < channels_; ++channel) {
      double sum = 0;
      for (int k = channel; k < width; k += channels_) sum += sums[k];
      c.contribution[layer_.bias_offset() + channel] = static_cast<float>(sum);
    }
  }

 private:
  const ProductLayer& layer_;
  const TensorKernels& kernels_;
  TensorId gradient_;
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
std::unique_ptr<Op> make_bias_gradient(const ProductLayer& layer, const TensorKernels& kernels, TensorId gradient) {
  return std::make_unique<BiasGradient>(layer, kernels, gradient);
}

}  // namespace dtrain::backend::cpu
