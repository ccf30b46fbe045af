// Batch norm backward: the sums over all samples, and the gradient by the input.
#include <cmath>
#include <cstring>

#include "norm.hpp"
#include "rows.hpp"

namespace dtrain::backend::cpu {
namespace {

NormBackward backward_tensors(const Context& c, const NormGradientTensors& tensors,
                              const NormCoefficients& coefficients) {
  const auto data = [&](TensorId id) { return id == kNoTensor ? nullptr : c.data(id); };
  return {.gradient = data(tensors.gradient),
          .gradient2 = data(tensors.gradient2),
          .input = data(tensors.input),
          .output = data(tensors.output),
          .masked = data(tensors.masked),
          .mask = tensors.mask,
          .mean = coefficients.mean,
          .scale = coefficients.scale,
          .shift = coefficients.shift};
}

class NormGradientSums final : public SumOp {
 public:
  NormGradientSums(const NormLayer& layer, const TensorKernels& kernels, const NormGradientTensors& tensors)
      : layer_(layer), kernels_(kernels), tensors_(tensors) {
    kind = "batch_norm_gradient_sums";
    if (layer.learns) gradients = {{layer.beta, layer.shape.c}, {layer.gamma, layer.shape.c}};
    reads = {tensors.gradient, tensors.input};
    if (tensors.gradient2 != kNoTensor) reads.push_back(tensors.gradient2);
    if (tensors.output != kNoTensor) reads.push_back(tensors.output);
    if (tensors.masked != kNoTensor) {
      writes = {tensors.masked};
      in_place_read = tensors.gradient;
      in_place_write = tensors.masked;
    }
  }
  // Sums of the gradient by column of the kernels' rows, and behind them those of its products with the input.
  std::size_t workspace_bytes() const override {
    return 2 * static_cast<std::size_t>(row_width(layer_.shape.c)) * sizeof(double);
  }

  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }

  void run(Context& c) override {
    double* const sums = workspace<double>(c);
    const NormBackward tensors = backward_tensors(c, tensors_, coefficients_of(layer_, c.coefficients));
    const Rows rows = rows_of(c.shape(tensors_.input), c.count);
    kernels_.norm_backward_sums(tensors, rows, sums, sums + rows.width);
  }

  // One that does not learn only makes the masked gradient.
  bool synchronized() const override { return layer_.learns && layer_.layer.synchronized; }
  // The number of elements of a channel, the sums of the channels and behind them those of the products.
  std::size_t row_size() const override { return layer_.learns ? place_of_product(layer_.shape.c) : 0; }

  void sum_up(std::span<Context> threads, std::span<double> row) override {
    if (!layer_.learns) return;
    const Context& leader = threads.front();
    const RepeatedChannels in_row(layer_.shape.c);
    row[0] = static_cast<double>(leader.shard.n) * layer_.shape.h * layer_.shape.w;
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      double sum = 0, product = 0;
      for (Context& thread : threads) {
        const double* const sums = workspace<double>(thread);
        in_row.add(sums, channel, sum);
        in_row.add(sums + in_row.width, channel, product);
      }
      row[place_of_sum(channel)] = sum;
      row[place_of_product(channel)] = product;
      write_gradients(leader, channel, sum, product);
    }
  }

  void take(const Context& c, std::span<const double> rows) override {
    if (!layer_.learns) return;
    const NormCoefficients to = coefficients_of(layer_, c.coefficients);
    const double count = total(rows, 0);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      const double sum = total(rows, place_of_sum(channel)), product = total(rows, place_of_product(channel));
      const double inverse = inverse_deviation(c, channel);
      to.in_row.write(to.factor, channel, to.scale[channel]);
      to.in_row.write(to.bias, channel, sum / count);
      to.in_row.write(to.slope, channel, product * inverse * inverse / count);
    }
  }

 private:
  static std::size_t place_of_sum(int channel) { return 1 + static_cast<std::size_t>(channel); }
  std::size_t place_of_product(int channel) const {
    return place_of_sum(layer_.shape.c) + static_cast<std::size_t>(channel);
  }

  // The sum over the rows of what each has at `place`. It begins with the first: 0 + x is not x where that is -0.
  double total(std::span<const double> rows, std::size_t place) const {
    double sum = rows[place];
    for (place += row_size(); place < rows.size(); place += row_size()) sum += rows[place];
    return sum;
  }

  // By beta and gamma.
  void write_gradients(const Context& c, int channel, double sum, double product) const {
    const double inverse = inverse_deviation(c, channel);
    c.contribution[layer_.beta + channel] = static_cast<float>(sum);
    c.contribution[layer_.gamma + channel] = layer_.layer.fix_gamma ? 0.0f : static_cast<float>(product * inverse);
  }

  // From the variance that the norm took, which stands in the contribution, so that a gamma of 0 does no harm. Where a
  // channel has one value, the running variance stands there; x - mean is 0 then, and the result does not depend on it.
  double inverse_deviation(const Context& c, int channel) const {
    const double variance =
        c.contribution[layer_.first_statistic + layer_.variance + channel] / static_cast<double>(c.shard.n);
    return 1 / std::sqrt(variance + layer_.layer.epsilon);
  }

  const NormLayer& layer_;
  const TensorKernels& kernels_;
  NormGradientTensors tensors_;
};

class NormGradientOp final : public ChunkOp {
 public:
  NormGradientOp(const NormLayer& layer, const TensorKernels& kernels, const NormGradientTensors& tensors,
                 TensorId addend, TensorId input_gradient)
      : layer_(layer), kernels_(kernels), tensors_(tensors), addend_(addend), input_gradient_(input_gradient) {
    kind = "batch_norm_gradient";
    if (tensors.masked != kNoTensor) {  // the whole gradient behind the mask: the sums have left it there
      tensors_.gradient = tensors.masked;
      tensors_.mask = Mask::none;
      tensors_.gradient2 = tensors_.output = tensors_.masked = kNoTensor;
    }
    reads = {tensors_.gradient, tensors_.input};
    if (tensors_.output != kNoTensor) reads.push_back(tensors_.output);
    if (addend != kNoTensor) reads.push_back(addend);
    writes = {input_gradient};
    in_place_read = tensors_.gradient;
    in_place_write = input_gradient;
  }

  void run(Context& c) override {
    const NormCoefficients coefficients = coefficients_of(layer_, c.coefficients);
    const NormGradient factors{.factor = coefficients.factor, .bias = coefficients.bias, .slope = coefficients.slope};
    const void* addend = addend_ == kNoTensor ? nullptr : c.data(addend_);
    kernels_.norm_backward(backward_tensors(c, tensors_, coefficients), factors, addend, c.data(input_gradient_),
                           rows_of(c.shape(tensors_.input), c.count));
  }

 private:
  const NormLayer& layer_;
  const TensorKernels& kernels_;
  NormGradientTensors tensors_;
  TensorId addend_, input_gradient_;
};

}  // namespace

std::unique_ptr<Op> make_norm_gradient_sums(const NormLayer& layer, const TensorKernels& kernels,
                                            const NormGradientTensors& tensors) {
  return std::make_unique<NormGradientSums>(layer, kernels, tensors);
}
std::unique_ptr<Op> make_norm_gradient(const NormLayer& layer, const TensorKernels& kernels,
                                       const NormGradientTensors& tensors, TensorId addend, TensorId input_gradient) {
  return std::make_unique<NormGradientOp>(layer, kernels, tensors, addend, input_gradient);
}

}  // namespace dtrain::backend::cpu
