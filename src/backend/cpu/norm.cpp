// Batch norm forward: the statistics, what follows from them, and the values.
#include "norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "rows.hpp"

namespace dtrain::backend::cpu {
namespace {

double gamma_of(const NormLayer& layer, const float* parameters, int channel) {
  return layer.layer.fix_gamma ? 1.0 : parameters[layer.gamma + channel];
}

// What the forward pass multiplies a channel by and adds. Gives the scale.
double write_forward(const NormLayer& layer, const float* parameters, int channel, double mean, double variance,
                     const NormCoefficients& to) {
  const double scale = gamma_of(layer, parameters, channel) / std::sqrt(variance + layer.layer.epsilon);
  to.in_row.write(to.mean, channel, mean);
  to.in_row.write(to.scale, channel, scale);
  to.in_row.write(to.shift, channel, parameters[layer.beta + channel] - mean * scale);
  return scale;
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

// One thread's sums of x - shift and of its squares, by column of the kernels' rows; the columns of one channel share
// its shift.
struct ColumnSums {
  RepeatedChannels in_row;
  double *elements, *sum, *square;
  float* shift;

  ColumnSums(double* memory, int channels)
      : in_row(channels),
        elements(memory),
        sum(memory + 1),
        square(sum + in_row.width),
        shift(reinterpret_cast<float*>(square + in_row.width)) {}
  static std::size_t bytes(int channels) {
    return sizeof(double) + static_cast<std::size_t>(row_width(channels)) * (2 * sizeof(double) + sizeof(float));
  }

  Moments moments(int channel) const {
    if (*elements == 0) return {};
    const double total = in_row.sum(sum, channel), squares = in_row.sum(square, channel);
    const double count = *elements / in_row.channels, mean = total / count;
    return {count, shift[channel] + mean, std::max(0.0, squares - total * mean)};
  }
};

// The order of a norm's sums over one shard: MeetingSink gathers these rows.
struct MomentsRow {
  static constexpr std::size_t kOfChannel = 3;
  static std::size_t place(int channel) { return kOfChannel * static_cast<std::size_t>(channel); }
  static void write(const Moments& moments, int channel, std::span<double> row) {
    std::ranges::copy(std::array{moments.count, moments.mean, moments.deviations},
                      row.begin() + static_cast<std::ptrdiff_t>(place(channel)));
  }
  static Moments read(std::span<const double> rows, std::size_t place) {
    return {rows[place], rows[place + 1], rows[place + 2]};
  }
};

class NormStatistics final : public SumOp {
 public:
  NormStatistics(const NormLayer& layer, const TensorKernels& kernels, TensorId input)
      : layer_(layer), kernels_(kernels), input_(input) {
    kind = "batch_norm_statistics";
    reads = {input};
  }
  std::size_t workspace_bytes() const override { return ColumnSums::bytes(layer_.shape.c); }

  void begin(Context& c) override { std::memset(workspace<double>(c), 0, workspace_bytes()); }

  void run(Context& c) override {
    ColumnSums sums(workspace<double>(c), layer_.shape.c);
    const Rows rows = rows_of(c.shape(input_), c.count);
    if (*sums.elements == 0) choose_shift(c, rows, sums);
    kernels_.moments(c.data(input_), rows, sums.shift, sums.sum, sums.square);
    *sums.elements += static_cast<double>(rows.rows * rows.width + rows.tail);
  }

  bool synchronized() const override { return layer_.layer.synchronized; }
  std::size_t row_size() const override { return MomentsRow::place(layer_.shape.c); }

  void sum_up(std::span<Context> threads, std::span<double> row) override {
    std::vector<ColumnSums> sums;
    sums.reserve(threads.size());
    for (const Context& thread : threads) sums.emplace_back(workspace<double>(thread), layer_.shape.c);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      Moments total;
      for (const ColumnSums& of_thread : sums) total.merge(of_thread.moments(channel));
      MomentsRow::write(total, channel, row);
    }
  }

  void take(const Context& c, std::span<const double> rows) override {
    const NormCoefficients to = coefficients_of(layer_, c.coefficients);
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      Moments total;
      for (std::size_t place = MomentsRow::place(channel); place < rows.size(); place += row_size()) {
        total.merge(MomentsRow::read(rows, place));
      }
      const double variance = total.deviations / total.count;
      write_forward(layer_, c.parameters, channel, total.mean, variance, to);
      write_statistics(c, channel, total.mean, total.count > 1 ? variance : running_variance(c, channel));
    }
  }

 private:
  // Weighted by the shard's samples: the update divides by those of all shards.
  void write_statistics(const Context& c, int channel, double mean, double variance) const {
    float* const statistics = c.contribution + layer_.first_statistic;
    statistics[layer_.mean + channel] = static_cast<float>(mean * c.shard.n);
    statistics[layer_.variance + channel] = static_cast<float>(variance * c.shard.n);
  }
  double running_variance(const Context& c, int channel) const { return c.statistics[layer_.variance + channel]; }

  // The first pixels' mean: near enough to the whole's that squares of differences lose nothing. The sums serve as
  // scratch, and are 0 before and after.
  void choose_shift(Context& c, Rows rows, ColumnSums& sums) const {
    constexpr std::int64_t kFewRows = 16;
    const Rows few{std::min(rows.rows, kFewRows), rows.width, rows.rows == 0 ? rows.tail : 0};
    kernels_.column_sums(c.data(input_), few, sums.sum);
    const double pixels = static_cast<double>(few.rows * few.width + few.tail) / layer_.shape.c;
    for (int channel = 0; channel < layer_.shape.c; ++channel) {
      sums.in_row.write(sums.shift, channel, sums.in_row.sum(sums.sum, channel) / pixels);
    }
    std::fill_n(sums.sum, few.width, 0.0);
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
    const NormCoefficients coefficients = coefficients_of(layer_, c.coefficients);
    const void* residual = residual_ == kNoTensor ? nullptr : c.data(residual_);
    kernels_.normalise(c.data(input_), residual, c.data(output_), rows_of(c.shape(input_), c.count), coefficients.scale,
                       coefficients.shift, relu_);
  }

 private:
  const NormLayer& layer_;
  const TensorKernels& kernels_;
  TensorId input_, residual_, output_;
  bool relu_;
};

}  // namespace

std::size_t coefficient_bytes(int channels) {
  return 6 * aligned(static_cast<std::size_t>(row_width(channels)) * sizeof(float));
}

NormCoefficients coefficients_of(const NormLayer& layer, std::byte* coefficients) {
  auto* const at = reinterpret_cast<float*>(coefficients + layer.coefficients);
  const RepeatedChannels in_row(layer.shape.c);
  const int width = in_row.width;
  return {.in_row = in_row,
          .mean = at,
          .scale = at + width,
          .shift = at + 2 * width,
          .factor = at + 3 * width,
          .bias = at + 4 * width,
          .slope = at + 5 * width};
}

void use_running_statistics(const NormLayer& layer, const float* parameters, const float* statistics,
                            std::byte* coefficients) {
  const NormCoefficients to = coefficients_of(layer, coefficients);
  for (int channel = 0; channel < layer.shape.c; ++channel) {
    const double mean = statistics[layer.mean + channel], variance = statistics[layer.variance + channel];
    const double scale = write_forward(layer, parameters, channel, mean, variance, to);
    to.in_row.write(to.factor, channel, scale);
    to.in_row.write(to.bias, channel, 0);
    to.in_row.write(to.slope, channel, 0);
  }
}

std::unique_ptr<Op> make_norm_statistics(const NormLayer& layer, const TensorKernels& kernels, TensorId input) {
  return std::make_unique<NormStatistics>(layer, kernels, input);
}
std::unique_ptr<Op> make_norm_apply(const NormLayer& layer, const TensorKernels& kernels, TensorId input,
                                    TensorId residual, bool relu, TensorId output) {
  return std::make_unique<NormApply>(layer, kernels, input, residual, relu, output);
}

}  // namespace dtrain::backend::cpu
