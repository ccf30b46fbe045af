#include "transposed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "../thread_clock.hpp"
#include "primitive_call.hpp"

namespace dtrain::backend::cpu {
namespace {

// Outputs of a block of pixels, all points of each.
constexpr int kBlockOutputs = 512 * 1024;
constexpr int kFewestPixels = 16, kMostPixels = 1024;

// What the three directions share. `source` and `result` are sides of the layer, or the gradients there.
class TransposedOp : public Op {
 public:
  // `read` are those of the two that the direction reads.
  TransposedOp(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows, TensorId source, TensorId result,
               std::vector<TensorId> read)
      : layer_(layer),
        in_(in),
        rows_(rows),
        stride_(layer.shape().spread),
        outputs_(layer.shape().out.c),
        block_(std::clamp(kBlockOutputs / outputs_, kFewestPixels, kMostPixels)),
        element_(bytes_of(layer.shape().dtype)),
        source_(source),
        result_(result) {
    kind = "convolution";
    reads = std::move(read);
    if (rows_.regions != kNoTensor) reads.push_back(rows_.regions);
  }

  // Samples are computed one by one, so that it does not matter how many there are.
  void prepare(int, int workers) override {
    for (const int pixels : {std::min(block_, pixels_of_sample()), pixels_of_sample() % block_}) {
      if (pixels == 0 || calls_.contains(pixels)) continue;
      const Compiled& compiled = compile(pixels);
      primitive_bytes_ = std::max(primitive_bytes_, aligned(compiled.scratchpad));
      packed_bytes_ = compiled.weights.layout.get_size();
      for (int worker = 0; worker < workers; ++worker) calls_[pixels].push_back(make_call(compiled));
    }
  }
  std::size_t scratchpad_bytes() const final {
    return primitive_bytes_ + block_bytes(outputs_) + (is_widened() ? block_bytes(in_.c) : 0);
  }
  std::size_t weight_bytes() const final { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const final { return packed_bytes_; }
  std::string shape_name(int count) const final {
    return fmt::format("n{0} {1}x{2}x{3} -> {4}x{5}x{6} k{7}x{7} s{7}", count, in_.c, in_.h, in_.w, channels(),
                       in_.h * stride_, in_.w * stride_, stride_);
  }
  bool meets() const final { return false; }
  void meet(std::span<Context>) final {}

  double bare_seconds(Worker& worker, int count, int repeats) final {
    double seconds = 0;
    for (auto& [pixels, calls] : calls_) {
      Call& call = calls[static_cast<std::size_t>(worker.id)];
      Buffer one(call.bytes(0)), two(call.bytes(1)), weights(call.bytes(2)), bias(call.bytes(2));
      for (const Buffer* buffer : {&one, &two, &weights, &bias}) {
        std::fill_n(buffer->as<std::uint32_t>(), buffer->size() / sizeof(std::uint32_t), kNearHalf);
      }
      const int times = pixels == block_ ? pixels_of_sample() / block_ : 1;
      seconds += times * median_seconds(
                             repeats, [&] { call(worker, one.data(), two.data(), weights.data(), bias.as<float>()); });
    }
    return count * seconds;
  }

 protected:
  struct Block {
    int sample, first, pixels;
  };

  virtual const Compiled& compile(int pixels) = 0;
  virtual Call make_call(const Compiled& compiled) const { return {compiled, 0}; }

  template <typename Work>
  void each_block(const Context& c, Work work) const {
    for (int sample = 0; sample < c.count; ++sample) {
      const int in_use = rows_.end(c, sample, in_.h) * in_.w;
      for (int first = 0; first < in_use; first += block_) {
        work(Block{sample, first, std::min(block_, pixels_of_sample() - first)});
      }
    }
  }
  void clear_unused(const Context& c, TensorId id) const { rows_.clear_below(c, id, in_.h); }
  Call& call_for(const Context& c, const Block& block) {
    return calls_.find(block.pixels)->second[static_cast<std::size_t>(c.worker->id)];
  }

  // The source's pixels of a block as the primitive takes or gives them: themselves, or a copy of float32.
  void* source_rows(const Context& c, const Block& block) const {
    return is_widened() ? c.worker->scratchpad.data() + primitive_bytes_ + block_bytes(outputs_)
                        : source_pixels(c, block);
  }
  void read_source(const Context& c, const Block& block) const {
    if (!is_widened()) return;
    to_float_(source_pixels(c, block), static_cast<float*>(source_rows(c, block)), std::int64_t{block.pixels} * in_.c);
  }
  void write_source(const Context& c, const Block& block) const {
    if (!is_widened()) return;
    from_float_(static_cast<const float*>(source_rows(c, block)), source_pixels(c, block),
                std::int64_t{block.pixels} * in_.c);
  }

  // The outputs of a block, a row for each pixel, and the result where they have their places.
  std::byte* result_rows(const Context& c) const { return c.worker->scratchpad.data() + primitive_bytes_; }
  void read_result(const Context& c, const Block& block) const {
    each_run(c, block, [&](std::byte* run, std::byte* place, std::int64_t size) {
      if (is_widened()) {
        to_float_(place, reinterpret_cast<float*>(run), size);
      } else {
        std::memcpy(run, place, static_cast<std::size_t>(size) * element_);
      }
    });
  }
  void write_result(const Context& c, const Block& block) const {
    each_run(c, block, [&](std::byte* run, std::byte* place, std::int64_t size) {
      if (is_widened()) {
        from_float_(reinterpret_cast<const float*>(run), place, size);
      } else {
        std::memcpy(place, run, static_cast<std::size_t>(size) * element_);
      }
    });
  }

  int points() const { return stride_ * stride_; }
  int channels() const { return outputs_ / points(); }

  ProductLayer& layer_;

 private:
  static constexpr std::uint32_t kNearHalf = 0x3f003f00;  // as float32 and as bfloat16

  bool is_widened() const { return layer_.shape().widened; }
  int pixels_of_sample() const { return in_.h * in_.w; }
  std::size_t block_bytes(int width) const {
    const std::size_t element = is_widened() ? sizeof(float) : element_;
    return aligned(static_cast<std::size_t>(block_) * static_cast<std::size_t>(width) * element);
  }
  std::byte* source_pixels(const Context& c, const Block& block) const {
    return static_cast<std::byte*>(c.sample(source_, block.sample)) +
           static_cast<std::size_t>(block.first) * static_cast<std::size_t>(in_.c) * element_;
  }

  // A pixel's outputs are stride_ runs of points that are neighbours in the result: calls use(run in the row of the
  // block, its place in the result, elements) for each.
  template <typename Use>
  void each_run(const Context& c, const Block& block, Use use) const {
    const std::int64_t size = std::int64_t{stride_} * channels();
    const auto run_bytes = static_cast<std::size_t>(size) * (is_widened() ? sizeof(float) : element_);
    std::byte* run = result_rows(c);
    auto* const result = static_cast<std::byte*>(c.sample(result_, block.sample));
    for (int pixel = block.first; pixel < block.first + block.pixels; ++pixel) {
      const std::int64_t y = pixel / in_.w, x = pixel % in_.w;
      for (int line = 0; line < stride_; ++line, run += run_bytes) {
        const std::int64_t place = ((y * stride_ + line) * in_.w + x) * size;
        use(run, result + static_cast<std::size_t>(place) * element_, size);
      }
    }
  }

  const nn::Shape in_;
  const RegionRows rows_;
  const int stride_, outputs_, block_;  // block_: pixels
  const std::size_t element_;
  const TensorId source_, result_;
  std::map<int, std::vector<Call>> calls_;  // by pixels, for each thread
  std::size_t primitive_bytes_ = 0, packed_bytes_ = 0;
  decltype(TensorKernels::to_float) to_float_ = select_kernels().bfloat16.to_float;
  decltype(TensorKernels::from_float) from_float_ = select_kernels().bfloat16.from_float;
};

class TransposedForward final : public TransposedOp {
 public:
  TransposedForward(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows, TensorId source, TensorId result)
      : TransposedOp(layer, in, rows, source, result, {source}), result_(result) {
    writes = {result};
  }
  // The bias of each output.
  std::size_t workspace_bytes() const override {
    return sizeof(float) * static_cast<std::size_t>(points()) * static_cast<std::size_t>(channels());
  }
  void begin(Context& c) override {
    float* to = workspace<float>(c);
    for (int point = 0; point < points(); ++point) {
      to = std::copy_n(c.parameters + layer_.bias_offset(), channels(), to);
    }
  }
  void run(Context& c) override {
    clear_unused(c, result_);
    each_block(c, [&](const Block& block) {
      read_source(c, block);
      call_for(c, block)(*c.worker, source_rows(c, block), result_rows(c), layer_.forward_weights(),
                         workspace<float>(c));
      write_result(c, block);
    });
  }
  void finish(Context&) override {}

 protected:
  const Compiled& compile(int pixels) override { return layer_.forward(pixels); }
  Call make_call(const Compiled& compiled) const override { return {compiled, layer_.shape().out.c}; }

 private:
  TensorId result_;
};

class TransposedBackwardData final : public TransposedOp {
 public:
  TransposedBackwardData(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows, TensorId gradient,
                         TensorId source_gradient)
      : TransposedOp(layer, in, rows, source_gradient, gradient, {gradient}), source_gradient_(source_gradient) {
    writes = {source_gradient};
  }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void run(Context& c) override {
    clear_unused(c, source_gradient_);
    each_block(c, [&](const Block& block) {
      read_result(c, block);
      call_for(c, block)(*c.worker, result_rows(c), source_rows(c, block), layer_.backward_weights_packed());
      write_source(c, block);
    });
  }
  void finish(Context&) override {}

 protected:
  const Compiled& compile(int pixels) override { return layer_.backward_data(pixels); }

 private:
  TensorId source_gradient_;
};

// Blocks after the first go to a second buffer and are added.
class TransposedBackwardWeights final : public TransposedOp {
 public:
  TransposedBackwardWeights(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows, TensorId source,
                            TensorId gradient)
      : TransposedOp(layer, in, rows, source, gradient, {source, gradient}) {
    gradients = {{layer.weight_offset(), static_cast<std::int64_t>(plain_bytes() / sizeof(float))}};
  }
  void prepare(int count, int workers) override {
    TransposedOp::prepare(count, workers);
    while (static_cast<int>(reorders_.size()) < workers) reorders_.emplace_back(layer_);
  }
  std::size_t workspace_bytes() const override { return kHeader + 2 * layout_bytes() + plain_bytes(); }
  void begin(Context& c) override { started(c) = false; }
  void run(Context& c) override {
    each_block(c, [&](const Block& block) {
      float* const to = started(c) ? term(c) : sum(c);
      read_source(c, block);
      read_result(c, block);
      call_for(c, block)(*c.worker, source_rows(c, block), result_rows(c), to);
      if (started(c)) kernels_.accumulate(to, sum(c), static_cast<std::int64_t>(layout_bytes() / sizeof(float)));
      started(c) = true;
    });
  }
  void finish(Context& c) override {
    float* const out = c.contribution + layer_.weight_offset();
    if (!started(c)) {
      std::memset(out, 0, plain_bytes());
      return;
    }
    reorders_[static_cast<std::size_t>(c.worker->id)](c.worker->stream, sum(c), plain(c), out);
  }

 protected:
  const Compiled& compile(int pixels) override { return layer_.backward_weights(pixels); }

 private:
  // From the primitive's layout to rows, and from these to the flat buffer's.
  struct Reorders {
    explicit Reorders(const ProductLayer& layer)
        : sum(layer.gradient_layout(), cpu_engine(), nullptr),
          plain(layer.shape().plain_weights(), cpu_engine(), nullptr),
          turned(layer.shape().turned_weights(), cpu_engine(), nullptr),
          spread(layer.shape().spread_weights(), cpu_engine(), nullptr),
          unpack(sum, plain),
          turn(turned, spread) {}
    void operator()(dnnl::stream& stream, float* from, float* between, float* to) {
      sum.set_data_handle(from);
      plain.set_data_handle(between);
      turned.set_data_handle(between);
      spread.set_data_handle(to);
      unpack.execute(stream, sum, plain);
      turn.execute(stream, turned, spread);
    }
    dnnl::memory sum, plain, turned, spread;
    dnnl::reorder unpack, turn;
  };

  // Whether the sum holds anything yet, the sum, the term to be added to it, and the sum in rows.
  static constexpr std::size_t kHeader = kAlignment;
  std::size_t layout_bytes() const { return aligned(layer_.gradient_layout().get_size()); }
  std::size_t plain_bytes() const { return layer_.shape().plain_weights().get_size(); }
  float* sum(const Context& c) const { return reinterpret_cast<float*>(workspace<std::byte>(c) + kHeader); }
  float* term(const Context& c) const { return sum(c) + layout_bytes() / sizeof(float); }
  float* plain(const Context& c) const { return term(c) + layout_bytes() / sizeof(float); }
  bool& started(const Context& c) const { return *workspace<bool>(c); }

  std::vector<Reorders> reorders_;
  const Kernels& kernels_ = select_kernels();
};

}  // namespace

std::unique_ptr<Op> make_transposed_forward(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                            TensorId source, TensorId result) {
  return std::make_unique<TransposedForward>(layer, in, rows, source, result);
}

std::unique_ptr<Op> make_transposed_backward_data(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                                  TensorId gradient, TensorId source_gradient) {
  return std::make_unique<TransposedBackwardData>(layer, in, rows, gradient, source_gradient);
}

std::unique_ptr<Op> make_transposed_backward_weights(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                                     TensorId source, TensorId gradient) {
  return std::make_unique<TransposedBackwardWeights>(layer, in, rows, source, gradient);
}

}  // namespace dtrain::backend::cpu
