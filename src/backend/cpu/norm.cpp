#include "norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "rows.hpp"

namespace dtrain::backend::cpu {
namespace {

std::size_t width_of(const NormLayer& layer) { return static_cast<std::size_t>(row_width(layer.shape.c)); }

Rows rows_in(const Context& c, TensorId id) {
  const nn::Shape& s = c.shape(id);
  return rows_of(std::int64_t{c.count} * s.h * s.w, s.c);
}

double gamma_of(const NormLayer& layer, const float* parameters, int channel) {
  return layer.layer.fix_gamma ? 1.0 : parameters[layer.gamma + channel];
}

// Writes value to the channel's place in each repetition.
void repeat(float* row, std::size_t width, int channels, int channel, double value) {
  for (std::size_t k = static_cast<std::size_t>(channel); k < width; k += static_cast<std::size_t>(channels)) {
    row[k] = static_cast<float>(value);
  }
}

// Count, mean and sum of squared deviations; merge() as in Chan, Golub and LeVeque 1983.
struct Moments {
  double count = 0, mean = 0, deviations = 0;
  void merge(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count;
    const double difference = other.mean - mean;
    mean += difference * (other.count / total);
    deviations += other.deviations + difference * difference * (count * other.count / total);
    count = total;
  }
};

// One thread's sums of x - shift and of its squares, by column; the columns of one channel share its shift.
struct ColumnSums {
  double *elements, *sum, *square;
  float* shift;
  std::size_t width;

  ColumnSums(double* memory, std::size_t columns)
      : elements(memory),
        sum(memory + 1),
        square(memory + 1 + columns),
        shift(reinterpret_cast<float*>(memory + 1 + 2 * columns)),
        width(columns) {}
  static std::size_t bytes(std::size_t columns) {
    return sizeof(double) + columns * (2 * sizeof(double) + sizeof(float));
  }

  Moments moments(int channels, int channel) const {
    if (*elements == 0) return {};
    double total = 0, squares = 0;
    for (std::size_t k = static_cast<std::size_t>(channel); k < width; k += static_cast<std::size_t>(channels)) {
      total += sum[k];
      squares += square[k];
    }
    const double count = *elements / channels, mean = total / count;
    return {count, shift[channel] + mean, std::max(0.0, squares - total * mean)};
  }
};

class NormStatistics final : public SumOp {
 public:
  NormStatistics(const NormLayer& layer, const TensorKernels& kernels, TensorId input)
      : layer_(layer), kernels_(kernels), input_(input) {
    kind = "batch_norm_statistics";
    reads = {input};
  }
  std::size_t workspace_bytes() const override { return ColumnSums::bytes(width_of(layer_)); }

  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }

  void run(Context& c) override {
    ColumnSums sums(workspace<double>(c), width_of(layer_));
    const Rows rows = rows_in(c, input_);
    if (*sums.elements == 0) choose_shift(c, rows, sums);
    kernels_.moments(c.data(input_), rows, sums.shift, sums.sum, sums.square);
    *sums.elements += static_cast<double>(rows.rows * rows.width + rows.tail);
  }

  bool synchronized() const override { return layer_.layer.synchronized; }
  std::size_t row_size() const override { return 3 * channels(); }

  // Count, mean and deviations of each channel.
  void sum_up(std::span<Context> threads, std::span<double> row) override {
    const std::size_t width = width_of(layer_);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      Moments total;
      for (Context& thread : threads) {
        total.merge(ColumnSums(workspace<double>(thread), width).moments(layer_.shape.c, channel));
      }
      std::ranges::copy(std::array{total.count, total.mean, total.deviations}, row.subspan(3 * at(channel)).begin());
    }
  }

  void take(const Context& c, std::span<const double> rows) override {
    const NormCoefficients to = coefficients_of(layer_, c.coefficients);
    const std::size_t width = width_of(layer_);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      Moments total;
      for (std::size_t first = 3 * at(channel); first < rows.size(); first += row_size()) {
        total.merge({rows[first], rows[first + 1], rows[first + 2]});
      }
      const double variance = total.deviations / total.count;
      const double scale = gamma_of(layer_, c.parameters, channel) / std::sqrt(variance + layer_.layer.epsilon);
      repeat(to.mean, width, layer_.shape.c, channel, total.mean);
      repeat(to.scale, width, layer_.shape.c, channel, scale);
      repeat(to.shift, width, layer_.shape.c, channel, c.parameters[layer_.beta + channel] - total.mean * scale);
      float* const statistics = c.contribution + layer_.first_statistic;
      statistics[layer_.mean + channel] = static_cast<float>(total.mean * c.shard.n);
      statistics[layer_.variance + channel] = static_cast<float>(variance * c.shard.n);
    }
  }

 private:
  static std::size_t at(int channel) { return static_cast<std::size_t>(channel); }
  std::size_t channels() const { return at(layer_.shape.c); }

  // The first pixels' mean: near enough to the whole's that squares of differences lose nothing.
  void choose_shift(Context& c, Rows rows, ColumnSums& sums) const {
    constexpr std::int64_t kFewRows = 16;
    const Rows few{std::min(rows.rows, kFewRows), rows.width, rows.rows == 0 ? rows.tail : 0};
    kernels_.column_sums(c.data(input_), few, sums.sum);
    const int channels = layer_.shape.c;
    const double pixels = static_cast<double>(few.rows * few.width + few.tail) / channels;
    for (int channel = 0; channel < channels; ++channel) {
      double sum = 0;
      for (std::size_t k = static_cast<std::size_t>(channel); k < sums.width; k += static_cast<std::size_t>(channels)) {
        sum += std::exchange(sums.sum[k], 0.0);
      }
      repeat(sums.shift, sums.width, channels, channel, sum / pixels);
    }
  }

  const NormLayer& layer_;
  const TensorKernels& kernels_;
  TensorId input_;
};

class NormApply final : public ChunkOp {
 public:
  NormApply(const NormLayer& layer, const TensorKernels& kernels, TensorId input, TensorId residual, bool relu,
            TensorId output)
      : layer_(layer), kernels_(kernels), input_(input), residual_(residual), output_(output), relu_(relu) {
    kind = "batch_norm";
    reads = {input};
    if (residual != kNoTensor) reads.push_back(residual);
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override {
    const NormCoefficients k = coefficients_of(layer_, c.coefficients);
    const void* residual = residual_ == kNoTensor ? nullptr : c.data(residual_);
    kernels_.normalise(c.data(input_), residual, c.data(output_), rows_in(c, input_), k.scale, k.shift, relu_);
  }

 private:
  const NormLayer& layer_;
  const TensorKernels& kernels_;
  TensorId input_, residual_, output_;
  bool relu_;
};

NormBackward backward_tensors(const Context& c, const NormGradientTensors& t, const NormCoefficients& k) {
  const auto data = [&](TensorId id) { return id == kNoTensor ? nullptr : c.data(id); };
  return {data(t.gradient), data(t.gradient2), data(t.input), data(t.output), data(t.masked), t.mask,
          k.mean,           k.scale,           k.shift};
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
  std::size_t workspace_bytes() const override { return 2 * width_of(layer_) * sizeof(double); }

  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }

  void run(Context& c) override {
    double* const sums = workspace<double>(c);
    const NormBackward tensors = backward_tensors(c, tensors_, coefficients_of(layer_, c.coefficients));
    kernels_.norm_backward_sums(tensors, rows_in(c, tensors_.input), sums, sums + width_of(layer_));
  }

  // One that does not learn only makes the masked gradient.
  bool synchronized() const override { return layer_.learns && layer_.layer.synchronized; }
  // The number of elements of a channel, the sums of the channels and behind them those of the products.
  std::size_t row_size() const override { return layer_.learns ? 1 + 2 * channels() : 0; }

  void sum_up(std::span<Context> threads, std::span<double> row) override {
    if (!layer_.learns) return;
    const Context& c = threads.front();
    const std::size_t width = width_of(layer_);
    row[0] = static_cast<double>(c.shard.n) * layer_.shape.h * layer_.shape.w;
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      double sum = 0, product = 0;
      for (Context& thread : threads) {
        const double* const sums = workspace<double>(thread);
        for (std::size_t k = channel; k < width; k += channels()) {
          sum += sums[k];
          product += sums[width + k];
        }
      }
      row[1 + channel] = sum;
      row[1 + channels() + channel] = product;
      const auto at = static_cast<std::int64_t>(channel);
      const double inverse = inverse_deviation(c, at);
      c.contribution[layer_.beta + at] = static_cast<float>(sum);
      c.contribution[layer_.gamma + at] = layer_.layer.fix_gamma ? 0.0f : static_cast<float>(product * inverse);
    }
  }

  void take(const Context& c, std::span<const double> rows) override {
    if (!layer_.learns) return;
    const NormCoefficients to = coefficients_of(layer_, c.coefficients);
    const std::size_t width = width_of(layer_);
    const double count = total(rows, 0);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      const auto at = static_cast<std::size_t>(channel);
      const double sum = total(rows, 1 + at), product = total(rows, 1 + channels() + at);
      const double inverse = inverse_deviation(c, channel);
      repeat(to.factor, width, layer_.shape.c, channel, to.scale[channel]);
      repeat(to.bias, width, layer_.shape.c, channel, sum / count);
      repeat(to.slope, width, layer_.shape.c, channel, product * inverse * inverse / count);
    }
  }

 private:
  std::size_t channels() const { return static_cast<std::size_t>(layer_.shape.c); }

  // Of what stands there in each row. It begins with the first: 0 + x is not x where that is -0.
  double total(std::span<const double> rows, std::size_t place) const {
    double sum = rows[place];
    for (place += row_size(); place < rows.size(); place += row_size()) sum += rows[place];
    return sum;
  }

  // From the variance that the norm took, which stands in the contribution, so that a gamma of 0 does no harm.
  double inverse_deviation(const Context& c, std::int64_t channel) const {
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
    if (tensors.masked != kNoTensor) {
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
    const NormCoefficients k = coefficients_of(layer_, c.coefficients);
    const void* addend = addend_ == kNoTensor ? nullptr : c.data(addend_);
    kernels_.norm_backward(backward_tensors(c, tensors_, k), {k.factor, k.bias, k.slope}, addend,
                           c.data(input_gradient_), rows_in(c, tensors_.input));
  }

 private:
  const NormLayer& layer_;
  const TensorKernels& kernels_;
  NormGradientTensors tensors_;
  TensorId addend_, input_gradient_;
};

}  // namespace

std::size_t coefficient_bytes(int channels) {
  return 6 * aligned(static_cast<std::size_t>(row_width(channels)) * sizeof(float));
}

NormCoefficients coefficients_of(const NormLayer& layer, std::byte* coefficients) {
  auto* const at = reinterpret_cast<float*>(coefficients + layer.coefficients);
  const std::size_t width = width_of(layer);
  return {at, at + width, at + 2 * width, at + 3 * width, at + 4 * width, at + 5 * width};
}

void use_running_statistics(const NormLayer& layer, const float* parameters, const float* statistics,
                            std::byte* coefficients) {
  const NormCoefficients to = coefficients_of(layer, coefficients);
  const std::size_t width = width_of(layer);
  for (int channel = 0; channel < layer.shape.c; ++channel) {
    const double mean = statistics[layer.mean + channel], variance = statistics[layer.variance + channel];
    const double scale = gamma_of(layer, parameters, channel) / std::sqrt(variance + layer.layer.epsilon);
    repeat(to.mean, width, layer.shape.c, channel, mean);
    repeat(to.scale, width, layer.shape.c, channel, scale);
    repeat(to.shift, width, layer.shape.c, channel, parameters[layer.beta + channel] - mean * scale);
    repeat(to.factor, width, layer.shape.c, channel, scale);
    repeat(to.bias, width, layer.shape.c, channel, 0);
    repeat(to.slope, width, layer.shape.c, channel, 0);
  }
}

std::unique_ptr<Op> make_norm_statistics(const NormLayer& layer, const TensorKernels& kernels, TensorId input) {
  return std::make_unique<NormStatistics>(layer, kernels, input);
}
std::unique_ptr<Op> make_norm_apply(const NormLayer& layer, const TensorKernels& kernels, TensorId input,
                                    TensorId residual, bool relu, TensorId output) {
  return std::make_unique<NormApply>(layer, kernels, input, residual, relu, output);
}
std::unique_ptr<Op> make_norm_gradient_sums(const NormLayer& layer, const TensorKernels& kernels,
                                            const NormGradientTensors& tensors) {
  return std::make_unique<NormGradientSums>(layer, kernels, tensors);
}
std::unique_ptr<Op> make_norm_gradient(const NormLayer& layer, const TensorKernels& kernels,
                                       const NormGradientTensors& tensors, TensorId addend, TensorId input_gradient) {
  return std::make_unique<NormGradientOp>(layer, kernels, tensors, addend, input_gradient);
}

}  // namespace dtrain::backend::cpu
