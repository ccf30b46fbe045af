#include "layers.hpp"

#include <dtrain/backend/dropout.hpp>

namespace dtrain::backend::cpu {
namespace {

std::int64_t elements(const Context& c, TensorId id) { return c.count * c.shape(id).size(); }

class LoadImages final : public ChunkOp {
 public:
  LoadImages(const TensorKernels& kernels, TensorId output) : kernels_(kernels), output_(output) {
    kind = "input";
    writes = {output};
  }
  void run(Context& c) override {
    const nn::Shape& s = c.shape(output_);
    for (int i = 0; i < c.count; ++i) {
      kernels_.load_image(c.shard.images + (c.first + i) * s.size(), s.c, std::int64_t{s.h} * s.w,
                          c.sample(output_, i));
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
    case nn::ActivationKind::gelu:
      return Curve::gelu;
    case nn::ActivationKind::silu:
      return Curve::silu;
    case nn::ActivationKind::hard_swish:
      return Curve::hard_swish;
    case nn::ActivationKind::hard_sigmoid:
      return Curve::hard_sigmoid;
  }
  return Curve::relu;
}

class ActivationOp final : public ChunkOp {
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

class ActivationGradient final : public ChunkOp {
 public:
  ActivationGradient(Curve curve, const TensorKernels& kernels, TensorId gradient, TensorId by, TensorId result)
      : curve_(curve), kernels_(kernels), gradient_(gradient), by_(by), result_(result) {
    kind = "activation_gradient";
    reads = {gradient, by};
    writes = {result};
    in_place_read = gradient;
    in_place_write = result;
  }
  void run(Context& c) override {
    kernels_.activate_backward(curve_, c.data(gradient_), c.data(by_), c.data(result_), elements(c, gradient_));
  }

 private:
  Curve curve_;
  const TensorKernels& kernels_;
  TensorId gradient_, by_, result_;
};

class AddOp final : public ChunkOp {
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

class ScaleOp final : public ChunkOp {
 public:
  ScaleOp(float factor, const TensorKernels& kernels, TensorId input, TensorId output)
      : factor_(factor), kernels_(kernels), input_(input), output_(output) {
    kind = "scale";
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override { kernels_.scale(c.data(input_), factor_, c.data(output_), elements(c, input_)); }

 private:
  float factor_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class DropoutOp final : public ChunkOp {
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
  std::size_t workspace_bytes() const override { return layer_.whole_samples ? 0 : size() * (sizeof(float) + 1); }
  void run(Context& c) override { layer_.whole_samples ? drop_samples(c) : drop_elements(c); }

 private:
  void drop_samples(Context& c) const {
    for (int i = 0; i < c.count; ++i) {
      std::uint8_t kept = 0;
      dropout_mask(c.key, node_, c.shard.sample_ids[c.first + i], layer_.p, {&kept, 1});
      kernels_.scale(c.sample(input_, i), kept ? dropout_scale(layer_.p) : 0.0f, c.sample(output_, i), shape_.size());
    }
  }
  void drop_elements(Context& c) const {
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
      kernels_.multiply(c.sample(input_, i), factors, c.sample(output_, i), shape_.size());
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(shape_.size()); }
  nn::Dropout layer_;
  int node_;
  nn::Shape shape_;
  const TensorKernels& kernels_;
  TensorId input_, output_;
};

class FlattenOp final : public ChunkOp {
 public:
  FlattenOp(const nn::Shape& shape, const TensorKernels& kernels, bool back, TensorId input, TensorId output)
      : shape_(shape), move_(back ? kernels.from_planes : kernels.to_planes), input_(input), output_(output) {
    kind = "flatten";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    for (int i = 0; i < c.count; ++i) {
      move_(c.sample(input_, i), shape_.c, std::int64_t{shape_.h} * shape_.w, c.sample(output_, i));
    }
  }

 private:
  nn::Shape shape_;
  void (*move_)(const void*, int, std::int64_t, void*);
  TensorId input_, output_;
};

class Boundary final : public LoopOp {
 public:
  Boundary() { kind = "boundary"; }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void run(Context&) override {}
  void finish(Context&) override {}
  bool meets() const override { return true; }
  void meet(std::span<Context>) override {}
};

}  // namespace

std::unique_ptr<Op> make_boundary() { return std::make_unique<Boundary>(); }
std::unique_ptr<Op> make_load_images(const TensorKernels& kernels, TensorId output) {
  return std::make_unique<LoadImages>(kernels, output);
}
std::unique_ptr<Op> make_activation(nn::ActivationKind kind, const TensorKernels& kernels, TensorId input,
                                    TensorId output) {
  return std::make_unique<ActivationOp>(curve_of(kind), kernels, input, output);
}
std::unique_ptr<Op> make_activation_gradient(nn::ActivationKind kind, const TensorKernels& kernels, TensorId gradient,
                                             TensorId by, TensorId input_gradient) {
  return std::make_unique<ActivationGradient>(curve_of(kind), kernels, gradient, by, input_gradient);
}
std::unique_ptr<Op> make_add(const TensorKernels& kernels, TensorId a, TensorId b, TensorId sum) {
  return std::make_unique<AddOp>(kernels, a, b, sum);
}
std::unique_ptr<Op> make_scale(const nn::Scale& layer, const TensorKernels& kernels, TensorId input, TensorId output) {
  return std::make_unique<ScaleOp>(layer.factor, kernels, input, output);
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

}  // namespace dtrain::backend::cpu
