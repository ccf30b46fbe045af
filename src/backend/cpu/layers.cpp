#include "layers.hpp"

#include <vector>

#include <dtrain/backend/dropout.hpp>

namespace dtrain::backend::cpu {
namespace {

// Sample i of a chunk within a tensor.
void* sample(const Context& c, TensorId id, int i) {
  const Tensor& t = c.tensors[static_cast<std::size_t>(id)];
  return static_cast<std::byte*>(c.data(id)) + static_cast<std::size_t>(i) * t.sample_bytes();
}

std::int64_t elements(const Context& c, TensorId id) { return c.count * c.shape(id).size(); }

class LoadImages final : public Op {
 public:
  LoadImages(const TensorKernels& kernels, TensorId output) : kernels_(kernels), output_(output) {
    kind = "input";
    writes = {output};
  }
  void run(Context& c) override {
    const nn::Shape& s = c.shape(output_);
    for (int i = 0; i < c.count; ++i) {
      kernels_.load_image(c.shard.images + (c.first + i) * s.size(), s.c, std::int64_t{s.h} * s.w,
                          sample(c, output_, i));
    }
  }

 private:
  const TensorKernels& kernels_;
  TensorId output_;
};

Curve curve_of(nn::ActivationKind kind) {
  switch (kind) {
    case nn::ActivationKind::relu:
      return Curve::relu;
    case nn::ActivationKind::relu6:
      return Curve::relu6;
    case nn::ActivationKind::tanh:
      return Curve::tanh;
    case nn::ActivationKind::sigmoid:
      return Curve::sigmoid;
  }
  return Curve::relu;
}

class ActivationOp final : public Op {
 public:
  ActivationOp(Curve curve, const TensorKernels& kernels, TensorId input, TensorId output)
      : curve_(curve), kernels_(kernels), input_(input), output_(output) {
    kind = "activation";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override { kernels_.activate(curve_, c.data(input_), c.data(output_), elements(c, input_)); }

 private:
  Curve curve_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class ActivationGradient final : public Op {
 public:
  ActivationGradient(Curve curve, const TensorKernels& kernels, TensorId gradient, TensorId output, TensorId result)
      : curve_(curve), kernels_(kernels), gradient_(gradient), output_(output), result_(result) {
    kind = "activation_gradient";
    reads = {gradient, output};
    writes = {result};
    in_place_read = gradient;
    in_place_write = result;
  }
  void run(Context& c) override {
    kernels_.activate_backward(curve_, c.data(gradient_), c.data(output_), c.data(result_), elements(c, gradient_));
  }

 private:
  Curve curve_;
  const TensorKernels& kernels_;
  TensorId gradient_, output_, result_;
};

class AddOp final : public Op {
 public:
  AddOp(const TensorKernels& kernels, TensorId a, TensorId b, TensorId sum)
      : kernels_(kernels), a_(a), b_(b), sum_(sum) {
    kind = "add";
    reads = {a, b};
    writes = {sum};
    in_place_read = a;
    in_place_write = sum;
  }
  void run(Context& c) override { kernels_.add(c.data(a_), c.data(b_), c.data(sum_), elements(c, a_)); }

 private:
  const TensorKernels& kernels_;
  TensorId a_, b_, sum_;
};

Window window_of(const nn::Pooling& p, const nn::Shape& in, const nn::Shape& out) {
  const bool max = p.kind == nn::PoolingKind::max;
  if (p.global) return {in.c, in.h, in.w, 1, 1, in.h, in.w, 1, 1, 0, 0, max, false};
  return {in.c,       in.h,       in.w,    out.h,   out.w, p.kernel_h,         p.kernel_w,
          p.stride_h, p.stride_w, p.pad_h, p.pad_w, max,   p.count_include_pad};
}

class PoolingOp final : public Op {
 public:
  PoolingOp(const Window& window, const TensorKernels& kernels, TensorId input, TensorId output)
      : window_(window), kernels_(kernels), input_(input), output_(output) {
    kind = "pooling";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) kernels_.pool(window_, sample(c, input_, i), sample(c, output_, i));
  }

 private:
  Window window_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class PoolingGradient final : public Op {
 public:
  PoolingGradient(const Window& window, const TensorKernels& kernels, TensorId input, TensorId gradient,
                  TensorId result)
      : window_(window), kernels_(kernels), input_(input), gradient_(gradient), result_(result) {
    kind = "pooling_gradient";
    reads = {gradient};
    if (window.max) reads.push_back(input);
    writes = {result};
  }
  // One sample's sums in float32.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(window_.in_h) * window_.in_w * window_.channels * sizeof(float);
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) {
      const void* const x = window_.max ? sample(c, input_, i) : nullptr;
      kernels_.pool_backward(window_, x, sample(c, gradient_, i), workspace<float>(c), sample(c, result_, i));
    }
  }

 private:
  Window window_;
  const TensorKernels& kernels_;
  TensorId input_, gradient_, result_;
};

class DropoutOp final : public Op {
 public:
  DropoutOp(const nn::Dropout& layer, int node, const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
            TensorId output)
      : layer_(layer), node_(node), shape_(shape), kernels_(kernels), input_(input), output_(output) {
    kind = "dropout";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  // Factors in memory order; the mask in c, h, w order.
  std::size_t workspace_bytes() const override { return size() * (sizeof(float) + 1); }
  void run(Context& c) override {
    float* const factors = workspace<float>(c);
    const std::span<std::uint8_t> mask(reinterpret_cast<std::uint8_t*>(factors + size()), size());
    const std::int64_t pixels = std::int64_t{shape_.h} * shape_.w;
    for (int i = 0; i < c.count; ++i) {
      dropout_mask(c.key, node_, c.shard.sample_ids[c.first + i], layer_.p, mask);
      for (std::int64_t p = 0; p < pixels; ++p) {
        for (int channel = 0; channel < shape_.c; ++channel) {
          const bool kept = mask[static_cast<std::size_t>(channel * pixels + p)];
          factors[p * shape_.c + channel] = kept ? dropout_scale(layer_.p) : 0.0f;
        }
      }
      kernels_.multiply(sample(c, input_, i), factors, sample(c, output_, i), shape_.size());
    }
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(shape_.size()); }
  nn::Dropout layer_;
  int node_;
  nn::Shape shape_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class FlattenOp final : public Op {
 public:
  FlattenOp(const nn::Shape& shape, const TensorKernels& kernels, bool back, TensorId input, TensorId output)
      : shape_(shape), move_(back ? kernels.from_planes : kernels.to_planes), input_(input), output_(output) {
    kind = "flatten";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) {
      move_(sample(c, input_, i), shape_.c, std::int64_t{shape_.h} * shape_.w, sample(c, output_, i));
    }
  }

 private:
  nn::Shape shape_;
  void (*move_)(const void*, int, std::int64_t, void*);
  TensorId input_, output_;
};

class SoftmaxLossOp final : public Op {
 public:
  SoftmaxLossOp(float label_smoothing, int top_k, std::int64_t first_metric, const TensorKernels& logit_kernels,
                const TensorKernels& kernels, TensorId logits, TensorId gradient)
      : label_smoothing_(label_smoothing),
        top_k_(top_k),
        first_metric_(first_metric),
        logit_kernels_(logit_kernels),
        kernels_(kernels),
        logits_(logits),
        gradient_(gradient) {
    kind = "softmax_loss";
    reads = {logits};
    writes = {gradient};
  }
  std::size_t workspace_bytes() const override { return 3 * sizeof(double); }
  void begin(Context& c) override {
    for (int k = 0; k < 3; ++k) workspace<double>(c)[k] = 0;
  }
  void run(Context& c) override {
    const int classes = c.shape(logits_).c;
    std::vector<float> gradient(static_cast<std::size_t>(classes)), widened(static_cast<std::size_t>(classes));
    double* const totals = workspace<double>(c);
    for (int i = 0; i < c.count; ++i) {
      logit_kernels_.to_float(sample(c, logits_, i), widened.data(), classes);
      const SampleMetrics m =
          softmax_loss(widened.data(), classes, c.shard.labels[c.first + i], label_smoothing_, top_k_, gradient.data());
      totals[0] += m.loss;
      totals[1] += m.correct;
      totals[2] += m.top_k_correct;
      kernels_.from_float(gradient.data(), sample(c, gradient_, i), classes);
    }
  }
  bool meets() const override { return true; }
  void meet(std::span<Context> threads) override {
    double totals[3] = {};
    for (Context& thread : threads) {
      for (int k = 0; k < 3; ++k) totals[k] += workspace<double>(thread)[k];
    }
    const Context& c = threads.front();
    for (int k = 0; k < 3; ++k) c.contribution[first_metric_ + k] = static_cast<float>(totals[k]);
    c.contribution[first_metric_ + 3] = static_cast<float>(c.shard.n);
  }

 private:
  float label_smoothing_;
  int top_k_;
  std::int64_t first_metric_;
  const TensorKernels& logit_kernels_;
  const TensorKernels& kernels_;
  TensorId logits_, gradient_;
};

class StoreLogits final : public Op {
 public:
  StoreLogits(const TensorKernels& kernels, TensorId logits) : kernels_(kernels), logits_(logits) {
    kind = "logits";
    reads = {logits};
  }
  void run(Context& c) override {
    const std::int64_t classes = c.shape(logits_).size();
    kernels_.to_float(c.data(logits_), c.logits + c.first * classes, c.count * classes);
  }

 private:
  const TensorKernels& kernels_;
  TensorId logits_;
};

}  // namespace

std::unique_ptr<Op> make_load_images(const TensorKernels& kernels, TensorId output) {
  return std::make_unique<LoadImages>(kernels, output);
}
std::unique_ptr<Op> make_activation(nn::ActivationKind kind, const TensorKernels& kernels, TensorId input,
                                    TensorId output) {
  return std::make_unique<ActivationOp>(curve_of(kind), kernels, input, output);
}
std::unique_ptr<Op> make_activation_gradient(nn::ActivationKind kind, const TensorKernels& kernels, TensorId gradient,
                                             TensorId output, TensorId input_gradient) {
  return std::make_unique<ActivationGradient>(curve_of(kind), kernels, gradient, output, input_gradient);
}
std::unique_ptr<Op> make_add(const TensorKernels& kernels, TensorId a, TensorId b, TensorId sum) {
  return std::make_unique<AddOp>(kernels, a, b, sum);
}
std::unique_ptr<Op> make_pooling(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                 const TensorKernels& kernels, TensorId input, TensorId output) {
  return std::make_unique<PoolingOp>(window_of(layer, in, out), kernels, input, output);
}
std::unique_ptr<Op> make_pooling_gradient(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                          const TensorKernels& kernels, TensorId input, TensorId gradient,
                                          TensorId input_gradient) {
  return std::make_unique<PoolingGradient>(window_of(layer, in, out), kernels, input, gradient, input_gradient);
}
std::unique_ptr<Op> make_dropout(const nn::Dropout& layer, int node, const nn::Shape& shape,
                                 const TensorKernels& kernels, TensorId input, TensorId output) {
  return std::make_unique<DropoutOp>(layer, node, shape, kernels, input, output);
}
std::unique_ptr<Op> make_flatten(const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
                                 TensorId output) {
  return std::make_unique<FlattenOp>(shape, kernels, false, input, output);
}
std::unique_ptr<Op> make_flatten_gradient(const nn::Shape& shape, const TensorKernels& kernels, TensorId gradient,
                                          TensorId input_gradient) {
  return std::make_unique<FlattenOp>(shape, kernels, true, gradient, input_gradient);
}
std::unique_ptr<Op> make_softmax_loss(float label_smoothing, int top_k, std::int64_t first_metric,
                                      const TensorKernels& logit_kernels, const TensorKernels& kernels, TensorId logits,
                                      TensorId gradient) {
  return std::make_unique<SoftmaxLossOp>(label_smoothing, top_k, first_metric, logit_kernels, kernels, logits,
                                         gradient);
}
std::unique_ptr<Op> make_store_logits(const TensorKernels& logit_kernels, TensorId logits) {
  return std::make_unique<StoreLogits>(logit_kernels, logits);
}

}  // namespace dtrain::backend::cpu
